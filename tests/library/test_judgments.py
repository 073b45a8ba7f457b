"""Tests of judgments: thumbs on results, choices between two options, and libraries of version 10."""

import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.stores.judgments import RESULT
from tests.library.forgetting import forget


def ratings(library):
    return [(one.song_ids, one.chosen) for one in library.judgments.all(RESULT)]


def test_thumbs_round_trip_and_replace_earlier_ones(tiny_library):
    a, b, c, d = [song.id for song in tiny_library.songs()[:4]]
    store = tiny_library.judgments
    store.rate_results(a, {d: 1, b: -1, c: 1})
    store.rate_results(b, {a: -1})
    assert list(store.ratings_of(a).items()) == [(d, 1), (b, -1), (c, 1)]
    assert ratings(tiny_library) == [((a, d), 1), ((a, b), -1), ((a, c), 1), ((b, a), -1)]
    store.rate_results(a, {c: -1})
    assert store.ratings_of(a) == {c: -1}
    assert ratings(tiny_library) == [((b, a), -1), ((a, c), -1)], "the newest last"
    store.rate_results(a, {})
    assert store.ratings_of(a) == {}
    assert ratings(tiny_library) == [((b, a), -1)]


def test_mark_changes_with_every_change(tiny_library):
    a, b, c = [song.id for song in tiny_library.songs()[:3]]
    store = tiny_library.judgments
    seen = [store.mark(RESULT)]
    for judged in ({b: 1}, {c: 1}, {c: -1}, {}):
        store.rate_results(a, judged)
        seen.append(store.mark(RESULT))
    assert all(one != other for one, other in pairwise(seen))
    assert seen[0] == seen[-1] == (0, 0)


def test_thumbs_are_persistent_and_deleted_with_songs(tiny_library):
    a, b, c = [song.id for song in tiny_library.songs()[:3]]
    tiny_library.judgments.rate_results(a, {b: 1, c: -1})
    with Library.open(tiny_library.folder) as again:
        assert again.judgments.ratings_of(a) == {b: 1, c: -1}
        forget(again, b)
        assert again.judgments.ratings_of(a) == {c: -1}
        forget(again, a)
        assert again.judgments.all(RESULT) == []


@pytest.mark.parametrize("judged", [{1: 1}, {2: 0}, {2: 3}])
def test_rejects_invalid_thumbs(tiny_library, judged):
    with pytest.raises(ValueError, match=r"chosen=.*give two different songs"):
        tiny_library.judgments.rate_results(1, judged)


def test_thumb_on_deleted_song_is_refused(tiny_library):
    a, b = [song.id for song in tiny_library.songs()[:2]]
    tiny_library.judgments.rate_results(a, {b: 1})
    with pytest.raises(NotFoundError, match="no longer in the library"):
        tiny_library.judgments.rate_results(a, {9999: 1})
    assert tiny_library.judgments.ratings_of(a) == {b: 1}


# --- choices between two options ------------------------------------------------------------------

DETAILS = {"seed": 7, "reasons": [["same artist", 0.25], None], "settings": {"freedom": 1.5}, "ünicode": "☂"}


def choose(library, kind, a, b, chosen, **context):
    return library.judgments.add("", kind, (), chosen, options=[a, b], **context)


def test_choices_round_trip(store):
    first = choose(store, "playlists", "native", "learned", 1, **DETAILS)
    second = choose(store, "playlists", "learned", "native", None)
    choose(store, "maps", "native", "learned", 0)
    with Library.open(store.folder) as again:
        kept = again.judgments.all("playlists")
        assert [(one.id, one.kind, one.options, one.chosen) for one in kept] == [
            (first, "playlists", ("native", "learned"), 1),
            (second, "playlists", ("learned", "native"), None),
        ]
        assert kept[0].context == {"options": ["native", "learned"]} | DETAILS
        assert {kept[0]: 1}[kept[0]] == 1, "records can be told apart by hash"
        assert again.judgments.answers() == []
        assert again.judgments.listeners() == []


def test_choice_is_deleted_alone(store):
    numbers = [choose(store, "playlists", "x", "y", 0) for _ in range(3)]
    store.judgments.forget(numbers[1])
    store.judgments.forget(999)
    assert [one.id for one in store.judgments.all("playlists")] == [numbers[0], numbers[2]]


def test_choices_do_not_change_revision(store):
    before = store.revision
    store.judgments.forget(choose(store, "playlists", "x", "y", 0))
    assert store.revision == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "x", "y", 0), "choice between two named options"),
        (("playlists", "", "y", 0), "choice between two named options"),
        (("playlists", "x", "x", 0), "must be different"),
        (("playlists", "x", "y", 2), "chosen=2 must be 0, 1, or None"),
    ],
)
def test_rejects_invalid_choices(store, arguments, message):
    with pytest.raises(ValueError, match=message):
        choose(store, *arguments)
    assert store.judgments.all("playlists", "") == []


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_rejects_context_that_is_not_json(store, value):
    with pytest.raises(ValueError, match="details"):
        choose(store, "playlists", "x", "y", 0, n=value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(details=st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_any_json_round_trips(store, details):
    number = choose(store, "playlists", "x", "y", 0, details=details)
    assert store.judgments.all("playlists")[-1].context["details"] == details
    store.judgments.forget(number)


# --- libraries of version 10 ----------------------------------------------------------------------

OLD_TABLES = """
    DROP TABLE judgments;
    CREATE TABLE preferences (
        id INTEGER NOT NULL PRIMARY KEY, created_at FLOAT NOT NULL, question TEXT NOT NULL, model_a TEXT NOT NULL,
        model_b TEXT NOT NULL, chosen TEXT NOT NULL, details JSON);
    CREATE TABLE answers (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, created_at FLOAT NOT NULL, listener TEXT NOT NULL,
        form TEXT NOT NULL, song_1 INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_2 INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_3 INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_4 INTEGER REFERENCES songs (id) ON DELETE CASCADE, chosen INTEGER, is_random BOOLEAN NOT NULL,
        foreseen BOOLEAN, model TEXT NOT NULL);
    CREATE TABLE judgements (
        query_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE, value INTEGER NOT NULL,
        created_at FLOAT NOT NULL, PRIMARY KEY (query_id, song_id));
    INSERT INTO preferences VALUES
        (1, 10.5, 'playlists', 'native', 'learned', 'b', '{"seed": 7, "models": [["m", null], [null, null]]}'),
        (2, 11.5, 'playlists', 'ünicode', 'shuffle', 'same', NULL);
    INSERT INTO answers VALUES
        (3, 20.000001, 'Ann', 'odd', 3, 1, 2, NULL, 0, 1, 0, 'native'),
        (7, 19, 'Bob', 'like', 1, 2, 3, 4, 3, 0, 1, ''), (8, 30, 'Ann', 'odd', 1, 2, 3, NULL, NULL, 0, NULL, '');
    INSERT INTO judgements VALUES (1, 2, 1, 5.2), (1, 4, -1, 5.1), (2, 1, 1, 4.9);
    ALTER TABLE jobs DROP COLUMN share;
    UPDATE meta SET value = '10' WHERE key = 'schema_version';
"""


@pytest.fixture
def old_library(tiny_library):
    """Return the folder of a library with the tables of version 10."""
    tiny_library.close()
    with closing(sqlite3.connect(tiny_library.folder / LIBRARY_FILE)) as database:
        database.executescript(OLD_TABLES)
    return tiny_library.folder


def content(library):
    kept = library.judgments.all("odd", "like", RESULT, "playlists")
    return [(one.created_at, one.listener, one.kind, one.song_ids, one.chosen, one.context) for one in kept]


def facts_of(engine, pragma):
    with engine.connect() as connection:
        return sorted(str(row[1:]) for row in connection.exec_driver_sql(f"PRAGMA {pragma}('judgments')"))


MOVED = [
    (4.9, "", "result", (2, 1), 1, {}),
    (5.1, "", "result", (1, 4), -1, {}),
    (5.2, "", "result", (1, 2), 1, {}),
    (10.5, "", "playlists", (), 1,
     {"options": ["native", "learned"], "seed": 7, "models": [["m", None], [None, None]]}),
    (11.5, "", "playlists", (), None, {"options": ["ünicode", "shuffle"]}),
    (19.0, "Bob", "like", (1, 2, 3, 4), 3, {"is_random": False, "foreseen": True, "model": ""}),
    (20.000001, "Ann", "odd", (3, 1, 2), 0, {"is_random": True, "foreseen": False, "model": "native"}),
    (30.0, "Ann", "odd", (1, 2, 3), None, {"is_random": False, "foreseen": None, "model": ""}),
]  # fmt: skip


def test_library_of_version_10_keeps_all_judgments(old_library):
    with Library.open(old_library) as library:
        assert content(library) == MOVED
        assert [one.id for one in library.judgments.answers("Ann")] == [3, 8]
        assert list(library.judgments.ratings_of(1).items()) == [(4, -1), (2, 1)]
        number = library.judgments.add("Ann", "odd", (1, 2, 3), 0)
        library.judgments.forget(number)
        assert library.judgments.add("Ann", "odd", (1, 2, 3), 0) > number
        forget(library, 3)
        assert [one[3] for one in content(library)] == [(2, 1), (1, 4), (1, 2), (), ()]
        assert not {"answers", "judgements", "preferences"} & set(sa.inspect(library.engine).get_table_names())
        fresh = sa.create_engine("sqlite://")
        schema.metadata.create_all(fresh)
        for pragma in ("table_info", "foreign_key_list", "index_list"):
            assert facts_of(library.engine, pragma) == facts_of(fresh, pragma)
    with Library.open(old_library) as library:
        assert len(content(library)) == 5


def test_library_of_version_11_keeps_jobs(tiny_library):
    tiny_library.jobs.create("add", {"paths": ["/music"]})
    tiny_library.close()
    with closing(sqlite3.connect(tiny_library.folder / LIBRARY_FILE)) as database:
        database.executescript(
            "ALTER TABLE jobs DROP COLUMN share; UPDATE meta SET value = '11' WHERE key = 'schema_version';"
        )
    with Library.open(tiny_library.folder) as library:
        (job,) = library.jobs.recent()
        assert (job.arguments, job.share) == ({"paths": ["/music"]}, 0.0)
        library.jobs.update(job.id, share=0.5)
    with Library.open(tiny_library.folder) as library:
        assert library.jobs.get(job.id).share == 0.5


def test_read_only_library_of_version_10_is_unchanged(old_library, monkeypatch):
    monkeypatch.setattr("musicsim.library.library.is_writable", lambda path: False)
    before = (old_library / LIBRARY_FILE).read_bytes()
    with pytest.raises(LibraryError, match=r"older version of musicsim \(schema 10\)"):
        Library.open(old_library)
    assert (old_library / LIBRARY_FILE).read_bytes() == before
