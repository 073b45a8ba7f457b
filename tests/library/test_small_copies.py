"""Tests of the daily small copies, and of restoring one to a library whose songs were analyzed again."""

import sqlite3
import tarfile
import time
from contextlib import closing

import pytest
import zstandard

from musicsim.errors import LibraryError, NotFoundError
from musicsim.library import Library
from musicsim.library.stores.small_copies import MAX_COPIES, SmallCopies
from tests.archives import parts_of, write_parts
from tests.command import run
from tests.sounds import open_library


def by_label(library):
    """Return everything that people said about the songs of a library, by title."""
    title = {song.id: song.title for song in library.songs(missing=True)}
    plays = library.plays()
    return {
        "plays": sorted(
            (plays.listeners[who], title[song], int(count))
            for who, song, count in zip(plays.listener, plays.song_id.tolist(), plays.count, strict=True)
        ),
        "lists": [(p.name, p.source, [title[i] for i in p.song_ids], p.details) for p in library.playlists()],
        "answers": [(a.listener, [title[i] for i in a.song_ids], a.chosen) for a in library.judgments.answers()],
        "edits": sorted((title[i], edits) for i, edits in library.edits.all().items()),
        "aliases": library.edits.aliases(),
        "thumbs": sorted((title[i], value) for i, value in library.feedback().items()),
        "tags": sorted((title[i], tags) for i, tags in library.tags().items()),
        "parted": sorted(
            sorted((title[p.first_id], title[p.second_id])) for p in library.duplicates.pairs() if not p.is_same
        ),
    }


def say(library):
    """Add an entry of every kind."""
    ids = [song.id for song in library.songs()]
    library.add_plays([{"listener": "ann", "song_id": i, "count": i} for i in ids[:5]])
    library.add_tags([{"song_id": ids[2], "tag": "calm", "weight": 2.0}])
    library.add_playlists([("evening", None, ids[3:9], {"seed": 5})], "saved")
    library.judgments.add("ann", "odd", tuple(ids[:3]), 1)
    library.edits.edit([ids[7]], {"genre": "polka", "title": "Renamed"})
    library.edits.merge(["Artist tones", "Tones"], "The Tones")
    library.set_feedback(ids[4], -1)


def test_only_first_change_of_day_creates_small_copy(store):
    assert store.copies.all() == [], "there is nothing to keep yet"
    store.copies = SmallCopies(store.folder, store.write, store.edits)  # from the view of the next process
    store.saved_playlists.add([("mine", None, [])], "saved")
    (copy,) = store.copies.all()
    assert copy.name.startswith(time.strftime("small-%Y-%m-%d-"))
    before = copy.read_bytes()
    for library in (store, Library.open(store.folder)):
        library.saved_playlists.add([("another", None, [])], "saved")
        assert [path.read_bytes() for path in store.copies.all()] == [before]
        library.close()


@pytest.mark.parametrize("year", [2001, 2999])
def test_seven_small_copies_are_kept_including_newest(store, year):
    """The new copy is kept even if the clock was set back before all others."""
    store.copies = SmallCopies(store.folder, store.write, store.edits)
    store.copies.folder.mkdir()
    old = [store.copies.folder / f"small-{year}-01-{day:02d}-120000-000000.tar.zst" for day in range(1, 11)]
    for path in old:
        path.touch()
    mine = store.copies.folder / "small talk.txt"
    mine.touch()
    store.saved_playlists.add([("mine", None, [])], "saved")
    kept = store.copies.all()
    assert len(kept) == MAX_COPIES
    assert len(set(kept) - set(old)) == 1
    assert set(kept) & set(old) == set(old[4:]), "the oldest go"
    assert mine.exists()


def test_failed_small_copy_is_logged(store, caplog):
    store.copies = SmallCopies(store.folder, store.write, store.edits)
    store.copies.folder.write_text("in the way")
    store.saved_playlists.add([("mine", None, [])], "saved")
    assert [p.name for p in store.playlists()] == ["mine"]
    assert "of plays, playlists, answers and edits could not be made" in caplog.text


def test_small_copy_restores_data_after_new_analysis(tiny_library, collection, tmp_path):
    say(tiny_library)
    copy = tiny_library.copies.keep_now()
    said = by_label(tiny_library)
    with open_library(tmp_path / "again") as again:
        for folder in sorted(collection.iterdir(), reverse=True):
            again.add(folder, n_workers=1)
        of = {song.title: song.id for song in again.songs()}
        assert of != {song.title: song.id for song in tiny_library.songs()}, "or ids would do"
        again.add_playlists([("a later one", None, [1, 2])], "saved")
        done = again.copies.bring_back(copy)
        assert (done.n_songs, done.n_absent) == (9, 0)
        assert by_label(again) == said
        assert again.song(of["Song noise 3"]).title == "Renamed"
        assert {song.artist for song in again.songs()} == {"The Tones", "Artist noise", "Artist clicks"}
        again.copies.bring_back(done.before)
        assert [p.name for p in again.playlists()] == ["a later one"], "what it replaced can be had again"
        assert again.song(of["Song noise 3"]).title == "Song noise 3"
        assert again.edits.aliases() == {}


def test_absent_songs_are_counted_and_left_out(tiny_library, collection, tmp_path):
    say(tiny_library)
    copy = tiny_library.copies.keep_now()
    with open_library(tmp_path / "part") as part:
        part.add(collection / "Artist tones", n_workers=1)
        done = part.copies.bring_back(copy)
        assert done.n_songs + done.n_absent == 9
        titles = {song.title for song in part.songs()}
        assert {title for _, title, _ in by_label(part)["plays"]} <= titles


def has_the_same_parts(one, other):
    try:
        return one.stat().st_size == other.stat().st_size and parts_of(one) == parts_of(other)
    except (zstandard.ZstdError, tarfile.TarError, ValueError):
        return False


def test_altered_small_copy_changes_nothing(tiny_library, rng, tmp_path):
    say(tiny_library)
    honest = tiny_library.copies.keep_now()
    said, revision = by_label(tiny_library), tiny_library.revision
    wrong = tmp_path / "wrong"
    for number in range(20):
        data = bytearray(honest.read_bytes())
        if number % 2:
            del data[rng.integers(len(data)) :]
        else:
            data[rng.integers(10, len(data))] ^= 1 << rng.integers(8)
        wrong.write_bytes(data)
        if has_the_same_parts(wrong, honest):  # a few bits of an archive are meaningless
            continue
        with pytest.raises(LibraryError, match="wrong: this is not a complete small copy"):
            tiny_library.copies.bring_back(wrong)
    for cut in range(1, 16):
        wrong.write_bytes(honest.read_bytes()[:-cut])
        with pytest.raises(LibraryError, match="wrong: this is not a complete small copy"):
            tiny_library.copies.bring_back(wrong)
    for database in (b"words", parts_of(honest)["small.json"]):
        write_parts(wrong, parts_of(honest) | {"library.sqlite": database})
        with pytest.raises(LibraryError, match="wrong: this is not a complete small copy"):
            tiny_library.copies.bring_back(wrong)
    assert (by_label(tiny_library), tiny_library.revision) == (said, revision)


def test_restore_command_uses_latest_small_copy(tiny_library):
    with pytest.raises(NotFoundError, match="no copy"):
        tiny_library.copies.latest()
    say(tiny_library)
    said = by_label(tiny_library)
    tiny_library.copies.keep_now()
    for playlist in tiny_library.playlists():
        tiny_library.saved_playlists.delete(playlist.id)
    out, _ = run("restore", "--small", library=tiny_library.folder)
    assert "the data of 9 songs" in out
    assert by_label(tiny_library) == said


@pytest.mark.parametrize(
    ("column", "value"), [("plays.count", "'x'"), ("playlists.created_at", "1e308"), ("playlists.name", "x'fffe00'")]
)
def test_small_copy_with_wrong_values_changes_nothing(tiny_library, tmp_path, column, value):
    say(tiny_library)
    copy = tiny_library.copies.keep_now()
    database = tmp_path / "copy"
    database.write_bytes(parts_of(copy)["library.sqlite"])
    table, name = column.split(".")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {name} = {value}")
    write_parts(tmp_path / "wrong", parts_of(copy) | {"library.sqlite": database.read_bytes()})
    tiny_library.set_feedback(1, 1)
    before = by_label(tiny_library)
    with pytest.raises(LibraryError, match=rf"wrong: .*{column}.* nothing was changed"):
        tiny_library.copies.bring_back(tmp_path / "wrong")
    assert by_label(tiny_library) == before
