"""The libraries under test, made once per run, each in a separate child."""

import shutil
from collections.abc import Callable
from pathlib import Path

from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from tests.children import complaint, finish
from tests.learning import write_styles
from tests.sounds import open_library, write_song

__all__ = [
    "change_music", "close_cleanly", "common_music", "copied", "in_child", "make_library", "make_music", "part_library",
    "whole_library",
]  # fmt: skip


def in_child(function: Callable[[], object], folder: Path) -> None:
    """Run a function that starts threads or processes in a child: this process must not have threads when it forks."""

    def call() -> None:
        function()

    ended = finish(call, folder / "said", 600.0)
    if wrong := complaint(ended):
        raise RuntimeError(f"{wrong}\n{ended.said}")


def make_music(folder: Path) -> Path:
    """Write thirty songs of two seconds by fifteen artists of three genres."""
    return folder if folder.exists() else write_styles(folder)


def make_library(folder: Path, music: Path) -> Path:
    """Make a library with model, map, and every kind of listening data."""

    def make() -> None:
        with open_library(folder) as library:
            library.add(music, n_workers=1)
            ids = [song.id for song in library.songs()]
            plays = [{"listener": f"l{n % 7}", "song_id": ids[n % len(ids)], "count": 1 + n % 3} for n in range(90)]
            library.add_plays(plays)
            library.add_playlists([(f"list {n}", None, ids[n : n + 5]) for n in range(10)], "saved")
            library.judgments.add("ann", "odd", tuple(ids[:3]), 1)
            library.edits.edit(ids[:2], {"genre": "polka"})
            refresh(library)

    if not folder.exists():
        in_child(make, folder.parent)
    return folder


def common_music(folder: Path) -> Path:
    """Return the songs that most steps share, next to the folder of a step; never changed."""
    return make_music(folder.parent / "common" / "music")


def whole_library(folder: Path) -> Path:
    """Return a closed library of all these songs; never changed."""
    return make_library(folder.parent / "common" / "whole", common_music(folder))


def part_library(folder: Path) -> Path:
    """Return a library of a third of these songs; never changed."""
    place, music = folder.parent / "common" / "part", common_music(folder)

    def make() -> None:
        with open_library(place) as library:
            for artist in sorted(music.iterdir())[::3]:
                library.add(artist, n_workers=1)
            refresh(library)

    if not place.exists():
        in_child(make, place.parent)
    return place


def copied(base: Path, to: Path) -> Path:
    """Copy a library for a step; an older copy is deleted."""
    shutil.rmtree(to, ignore_errors=True)
    return shutil.copytree(base, to, ignore=shutil.ignore_patterns("scratch"))


def change_music(music: Path) -> None:
    """Change music for a scan to find: songs that are new, deleted, moved, and with other tags."""
    import mutagen

    files = sorted(music.rglob("*.flac"))
    for n, path in enumerate(files):
        if n % 10 == 1:
            path.unlink()
        elif n % 10 == 3:
            path.rename(path.with_name(f"moved {path.name}"))
        elif n % 10 == 5:
            tags = mutagen.File(path, easy=True)
            tags["title"] = "another title"
            tags.save()
    for n in range(6):
        write_song(music / "new" / f"{n}.flac", "noise", 900 + n, 2.0, title=f"new {n}", artist="New")


def close_cleanly(folder: Path) -> None:
    """Close the library so that the database is one file."""
    Library.open(folder).close()
