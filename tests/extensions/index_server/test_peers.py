"""Tests of a Milvus server that sends false data: searches run locally instead, without a traceback."""

import contextlib
import socket
import threading

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.index_server import push as index_push
from musicsim.extensions.index_server import remote_index as index_server
from musicsim.extensions.index_server.push import push
from musicsim.extensions.index_server.remote_index import IndexServerError, give_name, remote_of
from tests.command import run
from tests.waiting import PATIENCE_S

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")

N = 200


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("some") / "library"
    with write_library(folder, N, random_state=3):
        return folder


@pytest.fixture
def lies(monkeypatch, tmp_path):
    """Start Milvus Lite, and return a function that changes its responses to a call."""
    from milvus_lite.adapter.grpc import servicer
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    change = {}
    for name in ("Search", "HasCollection", "ListAliases", "ShowCollections", "Query"):
        honest = getattr(servicer.MilvusServicer, name)

        def answer(self, request, context, name=name, honest=honest):
            said = honest(self, request, context)
            if name in change:
                change[name](said)
            return said

        monkeypatch.setattr(servicer.MilvusServicer, name, answer)
    server, database, port = start_server_in_thread(str(tmp_path / "data.db"))
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:http://127.0.0.1:{port}")
    monkeypatch.setattr(index_server, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(index_server, "WITHIN_S", PATIENCE_S)
    yield change.__setitem__
    server.stop(grace=0).wait()
    database.close()


def answers(snapshot):
    return [(hit.song.id, round(hit.distance, 4)) for hit in find_similar(snapshot, 7)]


def answers_here(library, monkeypatch):
    with monkeypatch.context() as local:
        local.delenv("MUSICSIM_INDEX")
        return answers(take_snapshot(library))


def ids(numbers):
    def change(said):
        of = said.results
        of.ids.int_id.data[:] = [int(i) for i in numbers(list(of.ids.int_id.data))]
        n = len(of.ids.int_id.data)
        of.scores[:] = [0.0] * n
        of.topks[:] = [n]
        for field in of.fields_data:
            field.scalars.long_data.data[:] = list(of.ids.int_id.data)

    return change


def texts(said):
    of = said.results
    of.ids.str_id.data[:] = ["7"] * len(of.ids.int_id.data)
    of.ClearField("fields_data")


def nothing(said):
    said.results.Clear()


def not_a_number(said):
    said.results.scores[:] = [float("nan")] * len(said.results.scores)


def lengths(said):
    said.results.topks[:] = [10**12]


SEARCHES = {
    "songs that are not there": ids(lambda honest: [10**12 + i for i in honest]),
    "negative": ids(lambda honest: [-i for i in honest]),
    "one song": ids(lambda honest: honest[:1] * len(honest)),
    "too many": ids(lambda honest: range(1, N)),
    "too few": ids(lambda honest: honest[:2]),
    "none": ids(lambda honest: []),
    "texts": texts,
    "no answer": nothing,
    "long": lengths,
}


@pytest.mark.long
@pytest.mark.parametrize("case", SEARCHES)
def test_false_results_are_replaced_by_local_results(library, lies, monkeypatch, case):
    push(take_snapshot(library))
    here = answers_here(library, monkeypatch)
    now = take_snapshot(library)
    assert answers(now) == here
    lies("Search", SEARCHES[case])
    assert answers(take_snapshot(library)) == here
    out, err = run("similar", 7, library=library.folder)
    assert "Traceback" not in out + err


@pytest.mark.long
def test_false_distances_are_never_shown(library, lies, monkeypatch):
    push(take_snapshot(library))
    here = dict(answers_here(library, monkeypatch))
    for change in (not_a_number, ids(lambda honest: honest[::-1])):
        lies("Search", change)
        found = answers(take_snapshot(library))
        assert found
        assert all(distance == here.get(song_id, distance) for song_id, distance in found)
        assert np.isfinite([distance for _, distance in found]).all()


@pytest.mark.long
def test_rejects_huge_response(library, lies, monkeypatch):
    push(take_snapshot(library))
    here = answers_here(library, monkeypatch)
    monkeypatch.setattr(index_server, "MAX_ANSWER", 1 << 20)
    monkeypatch.setattr(index_server, "server_named", index_server.Server)
    lies("Search", ids(lambda _: range(1 << 20)))
    now = take_snapshot(library)
    assert answers(now) == here


@pytest.mark.long
@pytest.mark.parametrize("call", ["ListAliases", "ShowCollections", "Query", "HasCollection"])
def test_push_to_lying_server_ends_or_fails_clearly(library, lies, call, monkeypatch):
    push(take_snapshot(library))
    library.edits.edit([3], {"year": 1901})
    (library.models.path(library.models.active().id) / "pushed.npz").unlink()
    monkeypatch.setattr(index_push, "LONG_S", 5.0)
    lies(call, lambda said: said.Clear())
    with contextlib.suppress(IndexServerError):
        push(take_snapshot(library))
    here = answers_here(library, monkeypatch)
    assert answers(take_snapshot(library)) == here


@pytest.mark.long
def test_endless_listing_is_abandoned(library, lies, monkeypatch):
    push(take_snapshot(library))

    class Endless:
        def next(self):
            return [{"id": 1, "digest": 1}] * 10_000

        def close(self):
            pass

    class Client:
        def query_iterator(self, *_, **__):
            return Endless()

    snapshot = take_snapshot(library)
    pushing = index_push.Push(snapshot, remote_of(snapshot), library.folder, "x", None)
    with pytest.raises(IndexServerError, match="more than 102,000 songs"):
        remote_of(snapshot).server.call(lambda _: pushing.read_entries(Client()))


def test_non_milvus_server_counts_as_unreachable(library, monkeypatch):
    junk = socket.create_server(("127.0.0.1", 0))

    def talk():
        while True:
            try:
                client, _ = junk.accept()
            except OSError:
                return
            with client, contextlib.suppress(ConnectionError):
                client.sendall(bytes(range(256)) * 4096)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:http://127.0.0.1:{junk.getsockname()[1]}")
        monkeypatch.setattr(index_server, "WITHIN_S", 1.0)
        give_name(library)
        here = answers_here(library, monkeypatch)
        now = take_snapshot(library)
        assert answers(now) == here
        assert "does not respond" in now.search_trouble
    finally:
        junk.shutdown(socket.SHUT_RDWR)
        junk.close()
        thread.join()
