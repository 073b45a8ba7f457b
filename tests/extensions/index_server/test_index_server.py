"""Search by a Milvus server: answers as of this machine, in step with the songs, and none where it is away."""

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
from musicsim.explorer.snapshot.filtering import condition_of, passing
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.index_server import push as index_push
from musicsim.extensions.index_server import remote_index as index_server
from musicsim.extensions.index_server.push import push, push_in_background
from musicsim.extensions.index_server.remote_index import (
    IndexServerError,
    expression_of,
    give_name,
    name_on_servers,
    remote_of,
)
from musicsim.library import Library
from musicsim.library.db import schema
from tests.command import run
from tests.library.forgetting import forget
from tests.waiting import until

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
    """A server of Milvus Lite, asked over the network as any other."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(tmp_path_factory.mktemp("milvus") / "data.db"))
    yield f"http://127.0.0.1:{port}"
    server.stop(grace=0).wait()
    database.close()


@pytest.fixture(autouse=True)
def _is_asked_at_once(monkeypatch, address):
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{address}")
    monkeypatch.setattr(index_server, "_LOOK_AGAIN_S", 0.0)


def collections(snapshot: Snapshot) -> dict[str, list[str]]:
    """Collections of a library on the server, with what else they are called."""
    ask = remote_of(snapshot).server.ask
    return {
        name: ask("list_aliases", name)["aliases"]
        for name in ask("list_collections")
        if name_on_servers(snapshot.library) in name
    }


def answers(snapshot: Snapshot, song_id: int, **how) -> list[tuple[int, float]]:
    return [(hit.song.id, round(hit.distance, 4)) for hit in find_similar(snapshot, song_id, **how)]


def answers_here(library: Library, song_id: int, monkeypatch, **how) -> list[tuple[int, float]]:
    """The same found by this machine."""
    with monkeypatch.context() as local:
        local.delenv("MUSICSIM_INDEX")
        return answers(take_snapshot(library), song_id, **how)


def found_there(library: Library, song_id: int, **how) -> list[tuple[int, float]]:
    """What is found by the server alone."""
    snapshot = take_snapshot(library)
    assert snapshot.search_trouble is None
    with pytest.MonkeyPatch.context() as alone:
        alone.setattr(Snapshot, "index", property(lambda _: pytest.fail("this machine was asked")))
        return answers(snapshot, song_id, **how)


@pytest.mark.parametrize("exact", [True, False])
def test_the_server_finds_what_this_machine_finds(library, monkeypatch, exact):
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


def test_filters_mean_the_same_there(library, monkeypatch):
    push(take_snapshot(library))
    now = take_snapshot(library)
    for filters in some_filters(now):
        how = {"filters": filters, "k": N, "max_per_artist": None}
        assert found_there(library, 7, **how) == answers_here(library, 7, monkeypatch, **how), filters
        expression = expression_of(condition_of(now, filters))
        if expression is None:  # tags are not there
            assert filters.tags or filters.no_tags
            continue
        found = remote_of(now).server.ask("query", remote_of(now).alias, filter=expression, output_fields=["id"])
        right = now.row_ids[passing(now, filters)].tolist()
        assert sorted(entry["id"] for entry in found) == sorted(right), expression


def test_where_the_server_cannot_know_which_songs_pass_more_are_asked_for(library, monkeypatch):
    push(take_snapshot(library))
    monkeypatch.setattr(index_server, "_MAX_LISTED", 10)
    monkeypatch.setattr(index_server, "_SPARE", 1)
    slow = {"filters": Filters(tags=frozenset({"slow"})), "k": 5}
    assert found_there(library, 7, **slow) == answers_here(library, 7, monkeypatch, **slow)
    monkeypatch.setattr(index_server, "MAX_ROWS", 150)  # of which not enough are slow
    many = slow | {"k": 130, "max_per_artist": None}
    assert answers(take_snapshot(library), 7, **many) == answers_here(library, 7, monkeypatch, **many)


def test_names_never_become_a_part_of_an_expression(library, monkeypatch):
    for song_id, name in enumerate(HOSTILE, 1):
        library.edits.edit([song_id], {"artist": name})
    push(take_snapshot(library))
    for song_id, name in enumerate(HOSTILE, 1):
        filters = Filters(artists=frozenset({name}))
        assert [i for i, _ in found_there(library, 300, filters=filters)] == [song_id]
        without = {"filters": Filters(no_artists=frozenset({name})), "k": N, "max_per_artist": None}
        assert len(found_there(library, 300, **without)) == N - 2  # without the query, too
    nowhere = Filters(artists=frozenset({"\udcff no UTF-8", "x" * 100_000}))
    assert found_there(library, 300, filters=nowhere) == []
    assert set("".join(expression_of(condition_of(take_snapshot(library), nowhere)))) <= set("(artist n[,])0123456789")


def test_only_names_hashed_and_numbers_leave_this_machine(library):
    push(take_snapshot(library))
    now = take_snapshot(library)
    (entry,) = remote_of(now).server.ask("query", remote_of(now).alias, filter="id == 7", output_fields=["*"])
    assert all(isinstance(value, int | float) for name, value in entry.items() if name != "vector")
    np.testing.assert_array_equal(np.float32(entry["vector"]), now.vectors_at(now.rows_of([7]))[0])


def test_it_follows_songs_that_go_and_come_and_change(library, monkeypatch):
    push(take_snapshot(library))
    gone = [i for i, _ in answers(take_snapshot(library), 7)]
    f = schema.files.c
    for missing_since in (1.0, None):
        with library.write() as connection:
            connection.execute(schema.files.update().where(f.song_id.in_(gone)).values(missing_since=missing_since))
        before = take_snapshot(library)
        assert "does not have the songs as they are now" in before.search_trouble
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


def test_what_was_brought_is_remembered_and_read_from_the_server_where_another_copy_was_at_it(
    library, monkeypatch, tmp_path
):
    push(take_snapshot(library))
    shutil.copytree(library.folder, tmp_path / "copy")
    library.edits.edit([3], {"year": 1901})
    with monkeypatch.context() as unread:
        unread.setattr(index_push._Push, "_read", lambda *_: pytest.fail("the server was read"))
        assert push(take_snapshot(library))
    with Library.open(tmp_path / "copy") as copy:
        forget(copy, 5)
        assert push(take_snapshot(copy))
        assert found_there(copy, 7) == answers_here(copy, 7, monkeypatch)
    assert push(take_snapshot(library))
    assert found_there(library, 7) == answers_here(library, 7, monkeypatch)


def test_a_thumb_leaves_it_in_step(library):
    push(take_snapshot(library))
    library.set_feedback(7, 1)
    assert not push(take_snapshot(library))
    assert take_snapshot(library).search_trouble is None


def a_new_model(library: Library) -> None:
    """Another model that finds others near, in use from now on."""
    now = take_snapshot(library)
    record = new_record("learned", "other", now.model, now.n_indexed)
    now.model.save(library.models.path(record.id))
    library.models.register(record)
    vectors = np.random.default_rng(0).permutation(now.X)
    library.models.append(record.id, now.row_ids.tolist(), library.models.features().X, vectors)
    library.models.finish(record.id, activate=True)


def test_a_new_model_has_a_collection_of_its_own_that_is_asked_when_it_is_whole(library, monkeypatch):
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
    assert new.search_trouble is not None  # all songs are there, but nothing says so
    assert answers(take_snapshot(library), 7) == answers_here(library, 7, monkeypatch)
    assert push(take_snapshot(library))
    assert len(collections(new)) == 1
    assert found_there(library, 7) == answers_here(library, 7, monkeypatch) != of_old


def test_another_model_than_the_one_in_use_is_searched_here(library):
    old = take_snapshot(library).record.id
    a_new_model(library)
    push(take_snapshot(library))
    assert take_snapshot(library, old).engine is None


def test_a_copy_of_the_library_is_answered_while_it_has_the_same_songs(library, monkeypatch, tmp_path):
    push(take_snapshot(library))
    library.close()
    shutil.copytree(library.folder, tmp_path / "copy")
    with Library.open(tmp_path / "copy") as copy:
        assert found_there(copy, 7) == answers_here(copy, 7, monkeypatch)
        copy.edits.edit([3], {"year": 1901})
        assert take_snapshot(copy).search_trouble is not None


def test_where_the_server_is_away_this_machine_answers_and_says_so(library, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:http://127.0.0.1:{closed.getsockname()[1]}")
        give_name(library)
        now = take_snapshot(library)
        assert answers(now, 7) == answers_here(library, 7, monkeypatch)
        assert now.search_trouble.startswith("Milvus at 127.0.0.1:")
        assert "does not answer" in now.search_trouble
        assert now.search_trouble.endswith(": this machine searches by itself.")
        with pytest.raises(IndexServerError, match="does not answer"):
            push(now)


def test_a_server_that_is_away_is_asked_again_after_a_while(library, monkeypatch, tmp_path):
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(tmp_path / "data.db"))
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:http://127.0.0.1:{port}")
    monkeypatch.setattr(index_server, "_WITHIN_S", 0.5)
    push(take_snapshot(library))
    now = take_snapshot(library)
    assert now.search_trouble is None
    server.stop(grace=0).wait()
    here = answers_here(library, 7, monkeypatch)
    assert answers(now, 7) == here
    assert "does not answer" in now.search_trouble
    database.close()
    server, database, _ = start_server_in_thread(str(tmp_path / "data.db"), port=port)
    assert now.search_trouble is not None  # it is left alone for a while
    monkeypatch.setattr(index_server, "_ASK_AGAIN_S", 0.0)
    assert found_there(library, 7) == here
    server.stop(grace=0).wait()
    database.close()


@pytest.mark.parametrize(
    "named", ["solr:http://localhost", "milvus:", "milvus:localhost:19530", "http://localhost:19530"]
)
def test_what_is_no_address_is_said(library, monkeypatch, named):
    monkeypatch.setenv("MUSICSIM_INDEX", named)
    give_name(library)
    assert "MUSICSIM_INDEX should be milvus:http://host:19530" in take_snapshot(library).search_trouble


def test_a_file_does_on_one_machine(library, monkeypatch, tmp_path):
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    push(take_snapshot(library))
    assert found_there(library, 7) == answers_here(library, 7, monkeypatch)
    assert (tmp_path / "songs.db").exists()


def test_visitors_search_there_and_bring_nothing(library, monkeypatch, tmp_path):
    push(take_snapshot(library))
    here = answers_here(library, 7, monkeypatch)
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert found_there(library, 7) == here
    with Library.open(library.folder) as visited, pytest.raises(OwnerOnlyError):
        push(take_snapshot(visited))
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    now = take_snapshot(library)
    assert answers(now, 7) == here
    assert now.search_trouble == "The index server does not answer: this machine searches by itself."
    assert not (tmp_path / "songs.db").exists()


def test_a_snapshot_that_was_looked_at_before_the_first_push_asks_the_server_after_it(library):
    before = take_snapshot(library)
    assert before.search_trouble is not None
    push(take_snapshot(library))
    assert before.search_trouble is None


def test_what_changes_while_songs_are_brought_is_brought_after_them(library):
    push_in_background(take_snapshot(library))
    library.edits.edit([3], {"year": 1901})
    push_in_background(take_snapshot(library))
    until(lambda: take_snapshot(library).search_trouble is None)
    assert [len(aliases) for aliases in collections(take_snapshot(library)).values()] == [1]


def test_songs_that_are_added_are_brought_with_them(tiny_library):
    refresh(tiny_library)
    assert take_snapshot(tiny_library).search_trouble is None


def test_the_command_line_brings_songs_and_says_how_it_is(library, monkeypatch):
    (before,) = {run("similar", 7, library=library.folder)[1]}
    assert "(`musicsim index` brings them there): this machine searches by itself." in before
    assert "answers searches; it has all 400 songs as they are." in run("index", library=library.folder)[0]
    assert run("similar", 7, library=library.folder)[1] == ""
    assert json.loads(run("index", "--json", library=library.folder)[0])["pushed"] is False
    monkeypatch.setenv("MUSICSIM_INDEX", "milvus:http://user:secret@127.0.0.1:9")
    _, error = run("index", library=library.folder, expect=1)
    assert "error: Milvus at 127.0.0.1:9 does not answer" in error
    monkeypatch.delenv("MUSICSIM_INDEX")
    assert "MUSICSIM_INDEX names no server" in run("index", library=library.folder)[0]


def test_without_a_server_nothing_is_brought_anywhere(library, monkeypatch):
    monkeypatch.delenv("MUSICSIM_INDEX")
    assert not push(take_snapshot(library))
    assert take_snapshot(library).search_trouble is None
    assert name_on_servers(library) is None
