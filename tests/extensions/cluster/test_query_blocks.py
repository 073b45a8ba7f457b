"""Tests of comparing many songs on a cluster: the same numbers as on this machine, even if workers die."""

import dataclasses
from functools import partial
from unittest import mock

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.explorer import query_blocks
from musicsim.explorer.evaluation import quality
from musicsim.explorer.snapshot import neighbors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.cluster.connection import choosing, use_cluster
from musicsim.library import Library
from musicsim.library.processes.pools import map_of
from musicsim.progress import no_progress
from musicsim.search import ExactIndex, PartitionIndex

pytest.importorskip("distributed")
pytest.importorskip("musicsim.extensions.exports", reason="another extension")

from benchmarks.support.dask_processes import DaskProcesses
from musicsim.extensions.exports import tables
from musicsim.extensions.exports.export import export
from musicsim.extensions.exports.request import ExportRequest

N = 1200


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Draw songs with genres. Tests must not change them."""
    folder = tmp_path_factory.mktemp("many") / "library"
    write_library(folder, N, n_dimensions=20, random_state=3).close()
    with Library.open(folder) as opened:
        yield opened


@pytest.fixture
def dask(tmp_path):
    with DaskProcesses(tmp_path) as processes:
        yield processes


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(query_blocks, "WORTH_SENDING_S", 0.0)
    for module in (quality, tables):
        monkeypatch.setattr(module, "QUERIES_AT_ONCE", 16)


@pytest.fixture
def only_there(monkeypatch):
    """Disable the fallback to this machine for tasks that the cluster cannot do."""

    def done_there(pool, function, tasks, *, limits):
        return map_of(pool, limits)(function, tasks)

    monkeypatch.setattr(query_blocks, "map_with_retry", done_there)


def evaluated(library, progress):
    """Return scores and lists of the active model."""
    now = take_snapshot(library)
    with mock.patch.multiple(quality, _MAX_QUERIES=400, _MAX_SONGS=500):
        scores = quality.measure_scores(now, "genre", progress=progress)
        few = quality.measure_lists(now, progress=progress)
    lists = few, quality.measure_lists(now, progress=progress)
    return dataclasses.asdict(scores), [dataclasses.asdict(one) for one in lists]


def neighbor_list(library, path, progress):
    export(library, "neighbours", path, ExportRequest(k=7), progress=progress)
    return path.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("what", ["evaluated", "compared", "asked a partition"])
def test_cluster_results_survive_killed_worker(dask, library, what, tmp_path, monkeypatch, only_there):
    do = evaluated
    if what != "evaluated":
        do = partial(neighbor_list, path=tmp_path / "list.csv")
    if what == "asked a partition":
        monkeypatch.setattr(neighbors, "INDEXED_FROM", 1000)
        now = take_snapshot(library)
        neighbors.update_index(library.models.path(now.record.id), now.X)
    assert type(take_snapshot(library).index.index) is (PartitionIndex if "partition" in what else ExactIndex)
    here = do(library, progress=no_progress)
    told = []

    def kill(*said):
        told.append(said)
        if len(told) == 6:
            dask.workers[0].kill()  # the nanny, whose worker ends with it

    with choosing(dask.address), use_cluster(library):
        there = do(library, progress=kill)
    assert len(told) > 25
    np.testing.assert_equal(there, here)
