"""Tests of naming a cluster on the command line, in the environment and in the settings."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from musicsim import metric
from musicsim.explorer import job_process, jobs, query_blocks
from musicsim.explorer.evaluation import quality
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.extensions.cluster.connection import choosing, cluster_of, use_cluster
from musicsim.extensions.cluster.pool import open_cluster
from musicsim.library.processes.pools import map_of
from musicsim.library.processes.workers import Limits
from tests.command import run
from tests.sounds import write_collection
from tests.waiting import until

pytest.importorskip("distributed")

from benchmarks.support.dask_processes import DaskProcesses


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with DaskProcesses(tmp_path_factory.mktemp("dask"), 1) as processes:
        yield processes


def test_argument_overrides_environment_and_settings(store, monkeypatch):
    assert cluster_of(store) == ""
    store.set_setting("cluster", "local:2")
    assert cluster_of(store) == "local:2"
    monkeypatch.setenv("MUSICSIM_CLUSTER", "tcp://there:8786")
    assert cluster_of(store) == "tcp://there:8786"
    for chosen in ("local:1", ""):  # an empty address selects this machine
        with choosing(chosen):
            assert cluster_of(store) == chosen


def test_text_setting_needs_no_quotes(tmp_path):
    library = tmp_path / "library"
    run("cluster", "status", library=library, expect=1)
    run("settings", "cluster", "local:2", library=library)
    _, err = run("cluster", "status", library=library, expect=1)
    assert "these workers run on this machine, but only during a scan" in " ".join(err.split())
    run("settings", "cluster", "", library=library)
    _, err = run("cluster", "status", library=library, expect=1)
    assert "no cluster is set" in err
    _, err = run("settings", "cluster", "nowhere", library=library, expect=2)
    assert "address of a Dask scheduler" in " ".join(err.split())


@pytest.mark.long
def test_cli_reports_cluster_and_scans_on_it(dask, tmp_path):
    library, music = tmp_path / "library", write_collection(tmp_path / "music", n_songs=2, seconds=2)
    asked = "cluster", "status", "--cluster", dask.address
    until(lambda: json.loads(run(*asked, "--json", library=library)[0])["n_workers"])
    out, _ = run(*asked, library=library)
    assert "1 worker, 1 thread" in out
    out, _ = run("add", music, "--shortest", 1, "--cluster", dask.address, "--json", library=library)
    assert json.loads(out)["added"] == 6


@pytest.mark.long
def test_job_scans_on_configured_cluster(dask, store, tmp_path):
    store.set_setting("cluster", "tcp://127.0.0.1:9")
    job = jobs.start(store, "add", {"paths": [str(write_collection(tmp_path / "music", n_songs=1))]})
    until(lambda: not store.jobs.get(job).is_active)
    assert "no Dask scheduler responds" in store.jobs.get(job).message
    store.set_setting("cluster", dask.address)
    job = jobs.start(store, "add", store.jobs.get(job).arguments)
    until(lambda: not store.jobs.get(job).is_active)
    assert (store.jobs.get(job).state, len(store)) == ("done", 3)


@pytest.mark.long
def test_cluster_encoding_matches_local_encoding(dask, tiny_library, monkeypatch):
    monkeypatch.setattr("musicsim.explorer.models.song_features.BLOCK", 2)
    songs = tiny_library.songs()
    frames = np.concatenate([tiny_library.frames(song) for song in songs])
    model = SimilarityModel(random_state=0).use_encoder(CodewordEncoder.fit_frames(frames, 1024, 4, 0))
    said = []
    here = list(feature_blocks(tiny_library, model, songs, lambda *_: None))
    with choosing(dask.address), use_cluster(tiny_library):
        away = list(feature_blocks(tiny_library, model, songs, lambda *words: said.append(words)))
    assert tiny_library.pool is None
    assert [[s.id for s in block] for block, _ in away] == [[s.id for s in block] for block, _ in here]
    for (_, one), (_, other) in zip(here, away, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(said) == len(here)


@pytest.mark.long
def test_cluster_evaluation_and_neighbors_match_local(dask, tiny_library, tmp_path, monkeypatch):
    tables = pytest.importorskip("musicsim.extensions.exports.tables", reason="another extension")
    tiny_library.edits.edit([song.id for song in tiny_library.songs()[:6]], {"genre": "Pitched"})
    tiny_library.close()
    folder, cluster = tiny_library.folder, ("--cluster", dask.address)
    evaluating = "evaluate", "--truth", "genre", "--json"
    here = run(*evaluating, library=folder)[0]
    run("export", "map", tmp_path / "here.csv", library=folder)
    pools = []

    def done_there(pool, function, tasks, *, limits):
        pools.append(pool)
        return map_of(pool, limits)(function, tasks)

    monkeypatch.setattr(query_blocks, "WORTH_SENDING_S", 0.0)
    for module in (quality, tables):
        monkeypatch.setattr(module, "QUERIES_AT_ONCE", 4)
    monkeypatch.setattr(query_blocks, "map_with_retry", done_there)
    assert run(*evaluating, *cluster, library=folder)[0] == here
    assert len(pools) == 4, "rankings and lists of two models"
    run("export", "map", tmp_path / "there.csv", *cluster, library=folder)
    assert len(pools) == 5
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


@pytest.mark.long
def test_exports_without_comparisons_need_no_cluster(tiny_library, tmp_path, monkeypatch):
    pytest.importorskip("musicsim.extensions.exports", reason="another extension")
    monkeypatch.setattr("musicsim.extensions.cluster.pool.CONNECT_S", 0.5)
    tiny_library.set_setting("cluster", "tcp://127.0.0.1:9")
    for what, state in (("vectors", "done"), ("neighbours", "failed")):
        _, said = run("export", what, tmp_path / "a.csv", library=tiny_library.folder, expect=int(state == "failed"))
        assert ("no Dask scheduler responds" in said) == (state == "failed")
        job = tiny_library.jobs.create("export", {"what": what, "path": str(tmp_path / "b.csv")})
        assert job_process.run(tiny_library, job) == state


@pytest.mark.long
def test_cluster_folds_match_local_folds(dask, rng):
    artists = np.repeat(np.arange(20), 5)
    X = np.c_[artists % 4 + 0.3 * rng.normal(size=100), 3 * rng.normal(size=(100, 3))]
    choice = metric.MLRCV(Cs=[1, 10, 100])
    with open_cluster(dask.address) as pool:
        away = clone(choice).fit(X, artists % 4, groups=artists, workers=map_of(pool, Limits(300.0, 4096)))
    here = clone(choice).fit(X, artists % 4, groups=artists)
    np.testing.assert_array_equal(away.scores_, here.scores_)
    np.testing.assert_array_equal(away.metric_, here.metric_)
