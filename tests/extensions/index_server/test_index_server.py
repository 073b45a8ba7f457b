"""Tests of search by a Milvus server: results as on this machine, synchronized songs, and fallback if it is down."""

import json
import shutil
import socket

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.audio import KEYS, MODES, Descriptors
from musicsim.errors import OwnerOnlyError
from musicsim.explorer.refresh.fitting import new_record
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.filtering import condition_of, filter_rows
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.index_server import push as index_push
from musicsim.extensions.index_server import remote_index as index_server
from musicsim.extensions.index_server.push import push, push_in_background
from musicsim.extensions.index_server.remote_index import (
    NAME_KEY,
    IndexServerError,
    expression_of,
    give_name,
    remote_of,
)
from musicsim.library import Library
from musicsim.library.db import schema
from tests.command import run
from tests.library.forgetting import forget
from tests.waiting import PATIENCE_S, until

pytest.importorskip("pymilvus")
pytest.importorskip("milvus_lite")

N = 400
HOSTILE = [
    'Guns "n" Roses',
    "O'Brien",
    "a backslash \\",
    '"] or id >= 0 or artist in ["',
    "{artist}",
    "名前 — ünï",
    "%_",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many") / "library"
    with write_library(folder, N, random_state=3) as library:
        library.add_tags([{"song_id": i, "tag": "slow", "weight": 1.0} for i in range(1, N, 3)])
        library.descriptors.save({
            i: Descriptors(
                60.1 + i % 90 if i % 4 else None, KEYS[i % 12], MODES[i % 2], -30 + i % 20, 900.0 + i, float(i % 50)
            )
            for i in range(1, N - 40)
        })  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Start Milvus Lite, reached over the network like any server."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(tmp_path_factory.mktemp("milvus") / "data.db"))
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=0).wait()
    database.close()


@pytest.fixture(autouse=True)
def _is_asked_at_once(monkeypatch, address):
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{address}")
    monkeypatch.setattr(index_server, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(index_server, "WITHIN_S", PATIENCE_S)


def collections(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return collections of a library on the server, with their other names."""
    ask = remote_of(snapshot).server.ask
    return {
        name: ask("list_aliases", name)["aliases"]
        for name in ask("list_collections")
        if snapshot.library.text(NAME_KEY) in name
    }


def answers(snapshot: Snapshot, song_id: int, **how) -> list[tuple[int, float]]:
    return [(hit.song.id, round(hit.distance, 4)) for hit in find_similar(snapshot, song_id, **how)]


def answers_here(library: Library, song_id: int, monkeypatch, **how) -> list[tuple[int, float]]:
    """Return the results of the same search on this machine."""
    with monkeypatch.context() as local:
        local.delenv("MUSICSIM_INDEX")
        return answers(take_snapshot(library), song_id, **how)


def found_there(library: Library, song_id: int, **how) -> list[tuple[int, float]]:
    """Return the results of the server alone."""
    snapshot = take_snapshot(library)
    assert snapshot.search_trouble is None
    with pytest.MonkeyPatch.context() as alone:
        alone.setattr(Snapshot, "index", property(lambda _: pytest.fail("this machine was asked")))
        return answers(snapshot, song_id, **how)


@pytest.mark.parametrize("exact", [True, False])
def test_server_results_match_local_results(library, monkeypatch, exact):
    assert push(take_snapshot(library), exact=exact)
    assert not push(take_snapshot(library))
    for song_id in (7, 100, 399):
        for how in ({}, {"hub_reduction": False, "max_per_artist": None, "k": 30}, {"exclude": [8, 9]}):
            assert found_there(library, song_id, **how) == answers_here(library, song_id, monkeypatch, **how)


def some_filters(snapshot: Snapshot) -> list[Filters]:
    songs = snapshot.songs_at()
    artists = frozenset({songs[0].artist, songs[9].artist} - {None})
    return [
        Filters(artists=artists),
        Filters(words="fast minor or -1970s"),
        Filters(words="1970s or plays:0 or tempo:>120"),
        Filters(no_artists=artists, modes=frozenset({"minor"})),
        Filters(genres=frozenset({"jazz", "ROCK"}), years=(1970, 2000)),
        Filters(folders=frozenset({songs[3].folder})),
        Filters(no_folders=frozenset({songs[3].folder.rsplit("/", 1)[0]})),
        Filters(years=(0, 1980)),
        Filters(duration_s=(songs[5].duration_s, songs[5].duration_s)),
        Filters(tempo=(-np.inf, np.inf)),
        Filters(tempo=(60.1, 70.1), loudness=(-25, -12)),
        Filters(brightness=(1000, 1300), energy=(0, 30), keys=frozenset({"A", "F#"})),
        Filters(words="not fast, 1970s"),
        Filters(words="not 1970s", artists=frozenset({"nobody"})),
        Filters(tags=frozenset({"slow"})),
        Filters(no_tags=frozenset({"Jazz", "slow"}), years=(1960, 2010)),
    ]


def test_filters_match_on_server(library, monkeypatch):
    push(take_snapshot(library))
    now = take_snapshot(library)
    for filters in some_filters(now):
        how = {"filters": filters, "k": N, "max_per_artist": None}
        assert found_there(library, 7, **how) == answers_here(library, 7, monkeypatch, **how), filters
        expression = expression_of(condition_of(now, filters))
        if expression is None:  # tags and plays are not on the server
            assert filters.tags or filters.no_tags or "plays" in filters.words
            continue
        found = remote_of(now).server.ask("query", remote_of(now).alias, filter=expression, output_fields=["id"])
        right = now.row_ids[filter_rows(now, filters)].tolist()
        assert sorted(entry["id"] for entry in found) == sorted(right), expression


@pytest.mark.long
def test_unknown_filters_request_more_candidates(library, monkeypatch):
    push(take_snapshot(library))
    monkeypatch.setattr(index_server, "MAX_LISTED", 10)
    monkeypatch.setattr(index_server, "SPARE", 1)
    slow = {"filters": Filters(tags=frozenset({"slow"})), "k": 5}
    assert found_there(library, 7, **slow) == answers_here(library, 7, monkeypatch, **slow)
    monkeypatch.setattr(index_server, "MAX_ROWS", 150)  # not enough of these are slow
    many = slow | {"k": 130, "max_per_artist": None}
    assert answers(take_snapshot(library), 7, **many) == answers_here(library, 7, monkeypatch, **many)


@pytest.mark.long
def test_names_cannot_inject_expressions(library, monkeypatch):
    for song_id, name in enumerate(HOSTILE, 1):
        library.edits.edit([song_id], {"artist": name})
    push(take_snapshot(library))
    for song_id, name in enumerate(HOSTILE, 1):
        filters = Filters(artists=frozenset({name}))
        assert [i for i, _ in found_there(library, 300, filters=filters)] == [song_id]
        without = {"filters": Filters(no_artists=frozenset({name})), "k": N, "max_per_artist": None}
        assert len(found_there(library, 300, **without)) == N - 2  # the query itself is excluded, too
    nowhere = Filters(artists=frozenset({"\udcff no UTF-8", "x" * 100_000}))
    assert found_there(library, 300, filters=nowhere) == []
    assert set("".join(expression_of(condition_of(take_snapshot(library), nowhere)))) <= set("(artist n[,])0123456789")


@pytest.mark.long
def test_only_hashed_names_and_numbers_are_pushed(library):
    push(take_snapshot(library))
    now = take_snapshot(library)
    (entry,) = remote_of(now).server.ask("query", remote_of(now).alias, filter="id == 7", output_fields=["*"])
    assert all(isinstance(value, int | float) for name, value in entry.items() if name != "vector")
    np.testing.assert_array_equal(np.float32(entry["vector"]), now.vectors_at(now.rows_of([7]))[0])


@pytest.mark.long
def test_push_follows_removed_added_and_changed_songs(library, monkeypatch):
    push(take_snapshot(library))
    gone = [i for i, _ in answers(take_snapshot(library), 7)]
    f = schema.files.c
    for missing_since in (1.0, None):
        with library.write() as connection:
            connection.execute(schema.files.update().where(f.song_id.in_(gone)).values(missing_since=missing_since))
        before = take_snapshot(library)
        assert "does not have the current songs" in before.search_trouble
        assert answers(before, 7) == answers_here(library, 7, monkeypatch)  # found by this machine
        assert push(before)
        assert found_there(library, 7) == answers_here(library, 7, monkeypatch)
        count = remote_of(before).server.ask("query", remote_of(before).alias, output_fields=["count(*)"])
        assert count[0]["count(*)"] == before.n_indexed
    forget(library, gone[0])
    library.edits.edit([gone[3]], {"genre": "Polka", "year": 1911})
    assert push(take_snapshot(library))
    filters = Filters(genres=frozenset({"polka"}), years=(1911, 1911))
    assert [i for i, _ in found_there(library, 7, filters=filters)] == [gone[3]]
    assert [len(aliases) for aliases in collections(take_snapshot(library)).values()] == [1]


@pytest.mark.long
def test_push_state_is_cached_or_read_from_server(library, monkeypatch, tmp_path):
    push(take_snapshot(library))
    shutil.copytree(library.folder, tmp_path / "copy")
    library.edits.edit([3], {"year": 1901})
    with monkeypatch.context() as unread:
        unread.setattr(index_push.Push, "read_entries", lambda *_: pytest.fail("the server was read"))
        assert push(take_snapshot(library))
    with Library.open(tmp_path / "copy") as copy:
        forget(copy, 5)
        assert push(take_snapshot(copy))
        assert found_there(copy, 7) == answers_here(copy, 7, monkeypatch)
    assert push(take_snapshot(library))
    assert found_there(library, 7) == answers_here(library, 7, monkeypatch)


@pytest.mark.long
def test_thumbs_do_not_require_push(library):
    push(take_snapshot(library))
    library.set_feedback(7, 1)
    assert not push(take_snapshot(library))
    assert take_snapshot(library).search_trouble is None


def a_new_model(library: Library) -> None:
    """Make another model active that ranks songs differently."""
    now = take_snapshot(library)
    record = new_record("learned", "other", now.model, now.n_indexed)
    now.model.save(library.models.path(record.id))
    library.models.register(record)
    vectors = np.random.default_rng(0).permutation(now.X)
    library.models.append(record.id, now.row_ids.tolist(), library.models.features().X, vectors)
    library.models.finish(record.id, activate=True)


@pytest.mark.long
def test_new_model_is_searched_only_when_completely_pushed(library, monkeypatch):
    push(take_snapshot(library))
    of_old = found_there(library, 7)
    a_new_model(library)
    new = take_snapshot(library)
    ask = remote_of(new).server.ask

    def broken(method, *args, **options):
        if method == "flush":
            raise IndexServerError("it stopped")
        return ask(method, *args, **options)

    with monkeypatch.context() as server:
        server.setattr(remote_of(new).server, "ask", broken)
        with pytest.raises(IndexServerError, match="it stopped"):
            push(new)
    assert len(collections(new)) == 2
    assert new.search_trouble is not None  # all songs are there, but nothing records that
    assert answers(take_snapshot(library), 7) == answers_here(library, 7, monkeypatch)
    assert push(take_snapshot(library))
    assert len(collections(new)) == 1
    assert found_there(library, 7) == answers_here(library, 7, monkeypatch) != of_old


@pytest.mark.long
def test_inactive_model_is_searched_locally(library):
    old = take_snapshot(library).record.id
    a_new_model(library)
    push(take_snapshot(library))
    assert take_snapshot(library, old).engine is None


@pytest.mark.long
def test_library_copy_uses_server_until_songs_differ(library, monkeypatch, tmp_path):
    push(take_snapshot(library))
    library.close()
    shutil.copytree(library.folder, tmp_path / "copy")
    with Library.open(tmp_path / "copy") as copy:
        assert found_there(copy, 7) == answers_here(copy, 7, monkeypatch)
        copy.edits.edit([3], {"year": 1901})
        assert take_snapshot(copy).search_trouble is not None


def test_unreachable_server_falls_back_with_notice(library, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:http://127.0.0.1:{closed.getsockname()[1]}")
        give_name(library)
        now = take_snapshot(library)
        assert answers(now, 7) == answers_here(library, 7, monkeypatch)
        assert now.search_trouble.startswith("Milvus at 127.0.0.1:")
        assert "does not respond" in now.search_trouble
        assert now.search_trouble.endswith(". Searching locally instead.")
        with pytest.raises(IndexServerError, match="does not respond"):
            push(now)


@pytest.mark.long
def test_unreachable_server_is_retried_later(library, monkeypatch, tmp_path):
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(tmp_path / "data.db"))
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:http://127.0.0.1:{port}")
    monkeypatch.setattr(index_server, "ASK_AGAIN_S", PATIENCE_S)
    push(take_snapshot(library))
    now = take_snapshot(library)
    assert now.search_trouble is None
    server.stop(grace=0).wait()
    monkeypatch.setattr(index_server, "WITHIN_S", 0.5)
    here = answers_here(library, 7, monkeypatch)
    assert answers(now, 7) == here
    assert "does not respond" in now.search_trouble
    database.close()
    server, database, _ = start_server_in_thread(str(tmp_path / "data.db"), port=port)
    assert now.search_trouble is not None  # it is not asked again for a while
    monkeypatch.setattr(index_server, "ASK_AGAIN_S", 0.0)
    monkeypatch.setattr(index_server, "WITHIN_S", PATIENCE_S)
    assert found_there(library, 7) == here
    server.stop(grace=0).wait()
    database.close()


@pytest.mark.parametrize(
    "named", ["solr:http://localhost", "milvus:", "milvus:localhost:19530", "http://localhost:19530"]
)
def test_invalid_address_gives_clear_error(library, monkeypatch, named):
    monkeypatch.setenv("MUSICSIM_INDEX", named)
    give_name(library)
    assert "MUSICSIM_INDEX must be milvus:http://host:19530" in take_snapshot(library).search_trouble


@pytest.mark.long
def test_local_file_works_on_one_machine(library, monkeypatch, tmp_path):
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    push(take_snapshot(library))
    assert found_there(library, 7) == answers_here(library, 7, monkeypatch)
    assert (tmp_path / "songs.db").exists()


@pytest.mark.long
def test_visitors_search_but_do_not_push(library, monkeypatch, tmp_path):
    push(take_snapshot(library))
    here = answers_here(library, 7, monkeypatch)
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert found_there(library, 7) == here
    with Library.open(library.folder) as visited, pytest.raises(OwnerOnlyError):
        push(take_snapshot(visited))
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    now = take_snapshot(library)
    assert answers(now, 7) == here
    assert now.search_trouble == "The index server does not respond. Searching locally instead."
    assert not (tmp_path / "songs.db").exists()


@pytest.mark.long
def test_open_snapshot_uses_server_after_first_push(library):
    before = take_snapshot(library)
    assert before.search_trouble is not None
    push(take_snapshot(library))
    assert before.search_trouble is None


@pytest.mark.long
def test_changes_during_push_are_pushed_afterward(library):
    push_in_background(take_snapshot(library))
    library.edits.edit([3], {"year": 1901})
    push_in_background(take_snapshot(library))
    until(lambda: take_snapshot(library).search_trouble is None)
    assert [len(aliases) for aliases in collections(take_snapshot(library)).values()] == [1]


@pytest.mark.long
def test_added_songs_are_pushed(tiny_library):
    refresh(tiny_library)
    assert take_snapshot(tiny_library).search_trouble is None


@pytest.mark.long
def test_cli_pushes_songs_and_reports_status(library, monkeypatch):
    (before,) = {run("similar", 7, library=library.folder)[1]}
    assert "(run `musicsim index` to push them). Searching locally instead." in before
    assert "All 400 songs are up to date there." in run("index", library=library.folder)[0]
    assert run("similar", 7, library=library.folder)[1] == ""
    assert json.loads(run("index", "--json", library=library.folder)[0])["pushed"] is False
    monkeypatch.setenv("MUSICSIM_INDEX", "milvus:http://user:secret@127.0.0.1:9")
    _, error = run("index", library=library.folder, expect=1)
    assert "error: Milvus at 127.0.0.1:9 does not respond" in error
    monkeypatch.delenv("MUSICSIM_INDEX")
    assert "MUSICSIM_INDEX is not set" in run("index", library=library.folder)[0]


def test_nothing_is_pushed_without_server(library, monkeypatch):
    monkeypatch.delenv("MUSICSIM_INDEX")
    assert not push(take_snapshot(library))
    assert take_snapshot(library).search_trouble is None
    assert library.text(NAME_KEY) is None
