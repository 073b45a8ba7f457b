"""One walk for all pages and requests: it is computed once per revision and model."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import routes
from musicsim.errors import ModelError
from musicsim.explorer.playlists import walk as walks
from musicsim.explorer.playlists.shared_walk import find_walk, share_walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.waiting import PATIENCE_S, until


@pytest.fixture
def n_computed(monkeypatch) -> list[str]:
    """The models for which edges were computed, in order."""
    computed = []
    build = walks.build_hypergraph

    def count(snapshot, *args, **kwargs):
        computed.append(snapshot.record.name)
        return build(snapshot, *args, **kwargs)

    monkeypatch.setattr(walks, "build_hypergraph", count)
    return computed


@pytest.fixture
def client(tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    with TestClient(Starlette(routes=routes())) as client:
        yield client


def test_requests_share_the_walk(client, tiny_library, n_computed):
    for address in ("/radio?song=1", "/api/playlist?length=4", "/radio?song=2", "/radio?song=1&model=Codewords"):
        assert client.get(address).status_code == 200
    active = tiny_library.models.active().name
    assert n_computed == [active, "Codewords"]
    tiny_library.edits.edit([1], {"genre": "polka"})
    assert client.get("/radio?song=1").status_code == 200
    assert n_computed == [active, "Codewords", active]


def test_simultaneous_requests_wait_for_one_computation(tiny_library, n_computed):
    together = threading.Barrier(8)

    def ask(_) -> walks.Walk:
        together.wait(PATIENCE_S)
        return share_walk(take_snapshot(tiny_library))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert len(set(map(id, found))) == len(n_computed) == 1


def test_shared_walk_draws_what_a_new_one_draws(tiny_library):
    snapshot, request = take_snapshot(tiny_library), PlaylistRequest(length=6)
    for _ in range(2):
        assert share_walk(snapshot).generate(request, 3).songs == walks.Walk(snapshot).generate(request, 3).songs


def test_failure_is_not_shared(tiny_library, monkeypatch):
    def fail(*_args, **_kwargs):
        raise ModelError("the model is damaged.")

    with monkeypatch.context() as damaged:
        damaged.setattr(walks, "build_hypergraph", fail)
        with pytest.raises(ModelError, match="damaged"):
            share_walk(take_snapshot(tiny_library))
    assert share_walk(take_snapshot(tiny_library)).generate(PlaylistRequest(length=2), 0).songs


def test_walk_is_computed_once_in_background(tiny_library, n_computed):
    snapshot = take_snapshot(tiny_library)
    for _ in range(5):
        find_walk(snapshot)
    until(lambda: find_walk(snapshot) is not None)
    assert find_walk(snapshot) is share_walk(snapshot)
    assert len(n_computed) == 1


def test_background_tries_again_after_failure(tiny_library, monkeypatch):
    snapshot, failed = take_snapshot(tiny_library), threading.Event()

    def fail(*_args, **_kwargs):
        failed.set()
        raise ModelError("the model is damaged.")

    with monkeypatch.context() as damaged:
        damaged.setattr(walks, "build_hypergraph", fail)
        assert find_walk(snapshot) is None
        assert failed.wait(PATIENCE_S)
    until(lambda: find_walk(snapshot) is not None)
