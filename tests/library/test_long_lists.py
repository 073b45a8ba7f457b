"""Tests that work on very long playlists grows linearly and reports progress. No clock is read."""

import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from musicsim.library.importing import preview_import, read_listening
from musicsim.library.importing.places import PlaceIndex


def write_list(path, n_entries):
    lines = (
        f"#EXTINF:200,Artist {i // 7} - Song {i}\n/music/Artist {i // 10}/Album {i // 5}/{i:06d} Song.mp3\n"
        for i in range(n_entries)
    )
    path.write_text("#EXTM3U\n" + "".join(lines))
    return path


def n_calls(work):
    """Count the calls of Python and C functions."""
    n = 0

    def count(_frame, event, _function):
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return n


@pytest.mark.long
def test_preview_of_long_playlist_scales_linearly(tiny_library, tmp_path):
    def work(n_entries):
        path = write_list(tmp_path / f"{n_entries}.m3u8", n_entries)
        # imports take the same for any length, and only the spellings of the first 5,000 names are compared
        return n_calls(lambda: preview_import(tiny_library, read_listening([path])))

    work(100)
    few, some, many = work(6_000), work(9_000), work(15_000)
    assert many - some < 2.6 * (some - few), "of twice as many entries more it should be 2"
    assert (many - few) / 9_000 < 160


@pytest.mark.long
def test_long_playlist_uses_few_queries_and_reports_progress(tiny_library, tmp_path):
    path = write_list(tmp_path / "list.m3u8", 25_000)
    asked, told = [], []

    def progress(message, done, total):
        told.append((message, done))
        assert 0 <= done <= total

    sa.event.listen(tiny_library.engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
    seen = preview_import(tiny_library, read_listening([path], progress=progress), progress)
    assert (seen.n_rows, seen.n_matched) == (25_000, 0)
    by_place = [query for query in asked if "json_each" in query]
    assert len(by_place) == 3
    assert len(asked) < 30
    steps = {message: sum(m == message for m, _ in told) for message, _ in told}
    assert steps["looking for files"] == 3
    assert steps["matching songs"] == 25
    assert steps["list.m3u8"] >= 2


def test_path_spellings_find_same_song(tiny_library, tmp_path):
    song = tiny_library.songs()[0]
    place = str(song.path)
    folder, name = place.rsplit("/", 1)
    for spelling in (place, f"{folder}//{name}", f"{folder}/./{name}", f"/{place}/", f"{folder}/x/../{name}"):
        path = tmp_path / "one.m3u8"
        path.write_text(f"{spelling}\n")
        seen = preview_import(tiny_library, read_listening([path]))
        assert seen.song_ids.tolist() == [song.id], spelling


@pytest.mark.parametrize("is_here", [True, False])
def test_shared_path_end_is_searched_once(is_here):
    class Counting(int):
        """A song's id that counts how often songs are collected."""

        n_read = 0

        def __hash__(self):
            Counting.n_read += 1
            return super().__hash__()

    n = 500
    index = PlaceIndex((Path(f"/a/{i}/01 Intro.mp3"), Counting(i), is_here) for i in range(n))
    for i in range(n):
        assert index.find_by_end(f"/b/{n + i}/01 Intro.mp3") is None
    assert Counting.n_read <= 2 * n
