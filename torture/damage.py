"""Flipped bits, full or read-only disks, missing permissions: the error is one sentence, everything else works."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from musicsim import LIBRARY_FILE
from tests.children import NOBODY, command, complaint, finish
from tests.disks import fill, make_read_only, small_disk
from tests.whole import faults_of
from torture._libraries import close_cleanly, common_music, copied, part_library, whole_library
from torture._run import Attempt, NotHere, Tried

__all__ = ["bit_flips", "clock_back", "full_disk", "no_rights", "read_only"]

_LIMIT_S = 120.0
_ENDS = (0, 1, 2, 3, 4)  # 2: options are validated first, such as whether the library is readable


@contextmanager
def bit_flips(folder: Path) -> Iterator[Attempt]:
    """Flip bits of the database or of arrays: every command ends well or with a sentence, and none hangs."""
    base = whole_library(folder)
    commands = (
        ("list", "--json"), ("similar", 1), ("playlist", "-n", 5), ("scan",), ("info",), ("evaluate",),
        ("backup", folder / "backup"), ("train", "--from", "genre", "--strength", 100, "--name", "x"),
        ("models", "list"), ("duplicates",), ("edit", 2, "--title", "Other"),
    )  # fmt: skip

    def attempt(rng: np.random.Generator) -> Tried:
        library, lost = copied(base, folder / "library"), []
        files = [p for p in library.rglob("*") if p.is_file() and p.stat().st_size]
        arrays = [p for p in files if p.suffix in (".npy", ".npz", ".f32", ".json")]
        path = library / LIBRARY_FILE if rng.random() < 0.4 else arrays[rng.integers(len(arrays))]
        data = bytearray(path.read_bytes())
        for place in rng.integers(0, len(data), rng.choice([1, 8, 200])):
            data[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        where = path.relative_to(library)
        for which in rng.permutation(len(commands))[:3]:
            ended = finish(command(*commands[which], library=library), folder / "said", _LIMIT_S)
            if wrong := complaint(ended, _ENDS):
                lost.append(f"{where}: {commands[which][0]}: {wrong}")
        if where.name != LIBRARY_FILE:
            ended = finish(command("list", "--json", library=library), folder / "said", _LIMIT_S)
            lost += [f"{where}: list: {complaint(ended)}"] * bool(complaint(ended))
        return Tried(1, tuple(lost))

    yield attempt


@contextmanager
def _disk_of(place: Path, size_mb: int) -> Iterator[Path]:
    try:
        with small_disk(place, size_mb) as disk:
            yield disk
    except pytest.skip.Exception as error:
        raise NotHere(str(error)) from None
    finally:
        place.rmdir()


@contextmanager
def full_disk(folder: Path) -> Iterator[Attempt]:
    """Fill the disk after some kB: commands end with the sentence, and work again when there is space."""
    music, part, whole = common_music(folder), part_library(folder), whole_library(folder)
    plays = folder / "plays.csv"
    plays.write_text("listener,artist,title,plays\n" + "".join(f"l{n},Artist 0,Song 0 0,1\n" for n in range(20_000)))
    commands = (
        (part, ("add", music)), (whole, ("import", plays)), (part, ("scan",)), (whole, ("edit", 1, "--title", "Other")),
        (whole, ("train", "--from", "genre", "--strength", 100, "--name", "mine")),
    )  # fmt: skip
    with _disk_of(folder / "disk", 64) as disk:

        def attempt(rng: np.random.Generator) -> Tried:
            base, arguments = commands[rng.integers(len(commands))]
            library, lost = copied(base, disk / "library"), []
            close_cleanly(library)
            stuffing = fill(disk, left_kb=int(rng.choice([0, 4, 40, 200, 1000, 4000]) + rng.integers(40)))
            ended = finish(command(*arguments, library=library), folder / "said", _LIMIT_S)
            lost.append(complaint(ended, (0, 4)))
            stuffing.unlink()
            lost += faults_of(library)
            lost.append(complaint(finish(command(*arguments, library=library), folder / "said", _LIMIT_S)))
            lost += faults_of(library)
            return Tried(1, tuple(f"{arguments[0]}: {words}" for words in lost if words))

        yield attempt


_LOOKS = (("list", "--json"), ("similar", 1), ("playlist", "-n", 5), ("info",), ("models", "list"), ("failed",))
_CHANGES = (("scan",), ("edit", 1, "--title", "x"), ("settings", "shortest_s", 3), ("train", "--from", "genre"))


# commands without compiled kernels, whose cache another user may not write, and without workers, whose Python it may
# not read
_BY_ANOTHER = (
    ("list", "--json"), ("info",), ("models", "list"), ("failed",), ("missing",), ("edit", 1, "--title", "x"),
    ("settings", "shortest_s", 3), ("restore", "--small"),
)  # fmt: skip


@contextmanager
def read_only(folder: Path) -> Iterator[Attempt]:
    """Make the disk read-only: commands that read work, commands that write report it."""
    base = whole_library(folder)
    with _disk_of(folder / "disk", 64) as disk:
        library = copied(base, disk / "library")
        make_read_only(disk)

        def attempt(rng: np.random.Generator) -> Tried:
            looks, changes = _LOOKS[rng.integers(len(_LOOKS))], _CHANGES[rng.integers(len(_CHANGES))]
            seen = complaint(finish(command(*looks, library=library), folder / "said", _LIMIT_S))
            ended = finish(command(*changes, library=library), folder / "said", _LIMIT_S)
            refused = complaint(ended, (4,))
            backup = complaint(finish(command("backup", folder / "b", library=library), folder / "said", _LIMIT_S))
            parts = ((looks, seen), (changes, refused), (("backup",), backup))
            return Tried(3, tuple(f"{what[0]}: {words}" for what, words in parts if words))

        yield attempt


@contextmanager
def no_rights(folder: Path) -> Iterator[Attempt]:
    """Run as another user, without write permission for some files: every command ends well or with a sentence."""
    if os.geteuid() != 0:
        raise NotHere("only root can be another user")
    for place in (folder, folder.parent):
        place.chmod(0o711)
    if not all(place.stat().st_mode & 0o001 for place in folder.parents):
        raise NotHere(f"other users may not enter {folder}")
    base, said = whole_library(folder), folder / "said by another"
    said.touch()
    os.chown(said, NOBODY, NOBODY)

    def attempt(rng: np.random.Generator) -> Tried:
        library = copied(base, folder / "library")
        places = [library, *library.rglob("*")]
        for place in places:
            os.chown(place, NOBODY, NOBODY)
        for n in rng.integers(0, len(places), 3):
            os.chmod(places[n], int(rng.choice([0o000, 0o400, 0o500])))
        lost = []
        for which in (_BY_ANOTHER[n] for n in rng.permutation(len(_BY_ANOTHER))[:2]):
            ended = finish(command(*which, library=library), said, _LIMIT_S, user=NOBODY)
            lost += [f"{which[0]}: {complaint(ended, _ENDS)}"] * bool(complaint(ended, _ENDS))
        for place in places:
            if place.exists():
                os.chmod(place, 0o700)
        return Tried(2, (*lost, *faults_of(library)))

    yield attempt


@contextmanager
def clock_back(folder: Path) -> Iterator[Attempt]:
    """Set the clock back between two commands."""
    program = shutil.which("faketime")
    if program is None:
        raise NotHere("faketime is not installed")
    music, base = common_music(folder), part_library(folder)

    def attempt(rng: np.random.Generator) -> Tried:
        library, began = copied(base, folder / "library"), time.monotonic()
        when = f"-{rng.integers(1, 400)}d" if rng.random() < 0.8 else "@1980-01-01 00:00:00"
        run = [program, "-f", when, sys.executable, "-m", "musicsim", "add", str(music), "--library", str(library)]
        done = subprocess.run(run, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        lost = [done.stderr.splitlines()[-1]] if done.returncode else []
        return Tried(1, (*lost, *faults_of(library)), time.monotonic() - began)

    yield attempt
