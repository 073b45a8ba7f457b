"""SIGKILL at random moments: existing data survives, and the same command then completes."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from musicsim.explorer import jobs
from musicsim.explorer.models.files import save_model_file
from musicsim.library import Library
from tests.children import Child, command, complaint, finish
from tests.whole import faults_of, said
from torture._libraries import (
    change_music,
    common_music,
    copied,
    in_child,
    make_library,
    make_music,
    part_library,
    whole_library,
)
from torture._run import Attempt, Tried

__all__ = ["KILLED", "jobs_killed", "killed", "two_writers", "workers_killed"]

_KILLS = 4  # per library, before the command may complete
_LIMIT_S = 180.0


@dataclass(frozen=True)
class _Command:
    base: Path
    arguments: tuple[object, ...]  # a Path of the word "library" is replaced by the copy's


def _add(folder: Path) -> _Command:
    return _Command(part_library(folder), ("add", common_music(folder)))


def _scan(folder: Path) -> _Command:
    music = make_music(folder / "music")
    base = make_library(folder / "base", music)
    if not (music / "new").exists():
        change_music(music)
    return _Command(base, ("scan",))


def _whole(folder: Path, *arguments: object) -> _Command:
    return _Command(whole_library(folder), arguments)


def _refresh(folder: Path) -> _Command:
    base = copied(whole_library(folder), folder / "base")
    with Library.open(base) as library:
        library.jobs.create("refresh", {"force": True})
    return _Command(base, ("run-job", "library", 1))


def _train(folder: Path) -> _Command:
    return _whole(folder, "train", "--from", "genre", "--strength", 100, "--name", "mine")


def _import(folder: Path) -> _Command:
    plays = folder / "plays.csv"
    rows = (f"l{n % 997},Artist {n % 15},Song {n % 15} {n % 3},{1 + n % 7}\n" for n in range(40_000))
    plays.write_text("listener,artist,title,plays\n" + "".join(rows))
    return _whole(folder, "import", plays)


def _model(folder: Path) -> _Command:
    whole = _whole(folder)
    sent = folder / "sent.musicsim"

    def send() -> None:
        with Library.open(whole.base) as library:
            save_model_file(library, library.models.native().id, sent)

    in_child(send, folder)
    return _Command(whole.base, ("models", "import", sent))


def _evaluate(folder: Path) -> _Command:
    return _whole(folder, "evaluate", "--json")


def _backup(folder: Path) -> _Command:
    return _whole(folder, "backup", folder / "backup")


def _restore(folder: Path) -> _Command:
    base, backup = whole_library(folder), folder / "backup"
    in_child(command("backup", backup, library=base), folder)
    return _Command(base, ("restore", backup))


KILLED: dict[str, Callable[[Path], _Command]] = {
    "add": _add, "scan": _scan, "refresh": _refresh, "train": _train, "import": _import, "models import": _model,
    "evaluate": _evaluate, "backup": _backup, "restore": _restore,
}  # fmt: skip
"""Commands that are killed; each makes what it needs in a folder."""


def _lost(before: dict[str, Any], after: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """Return the data that a killed command has lost: anything from before that is there at the end must survive."""
    lost = []
    for name, had in before.items():
        if isinstance(had, int):
            if not min(had, end[name]) <= after[name] <= max(had, end[name]):
                lost.append(f"{name}: {had} before, {after[name]} after")
        else:
            gone = (set(had) & set(end[name])) - set(after[name])
            strange = set(after[name]) - set(had) - set(end[name])
            if name == "models":  # a model that was finished before the kill is made again, under another name
                strange = set()
            lost += [f"{name}: {len(gone)} have gone"] * bool(gone)
            lost += [f"{name}: {len(strange)} are neither of before nor of the end"] * bool(strange)
    return lost


def killed(name: str) -> Callable[[Path], Any]:
    """Return the step of a command: kill it some times on one library, then run it to its end."""

    @contextmanager
    def prepare(folder: Path) -> Iterator[Attempt]:
        of = KILLED[name](folder)

        def call(library: Path) -> Callable[[], None]:
            return command(*(library if a == "library" else a for a in of.arguments), library=library)

        whole = copied(of.base, folder / "whole")
        before, ended = said(whole), finish(call(whole), folder / "said", _LIMIT_S)
        if wrong := complaint(ended):
            raise RuntimeError(f"{name} does not work: {wrong}")
        end, seconds = said(whole), ended.seconds

        def attempt(rng: np.random.Generator) -> Tried:
            library, lost, n_kills = copied(of.base, folder / "library"), [], 0
            for _ in range(_KILLS):
                child = Child(call(library), folder / "said")
                time.sleep(rng.uniform(0.0, seconds))
                n_kills += child.kill().code == -signal.SIGKILL
                lost += faults_of(library) or _lost(before, said(library), end)
            ended = finish(call(library), folder / "said", _LIMIT_S)
            lost += [complaint(ended)] * bool(complaint(ended))
            lost += faults_of(library) or _lost(end, said(library), end)
            return Tried(max(1, n_kills), tuple(lost))

        yield attempt

    return prepare


@contextmanager
def workers_killed(folder: Path) -> Iterator[Attempt]:
    """Kill workers of a scan, as the kernel does when memory runs out: the scan continues, and no file is blamed."""
    music, base = common_music(folder), part_library(folder)

    def attempt(rng: np.random.Generator) -> Tried:
        library, lost, n_kills = copied(base, folder / "library"), [], 0
        child = Child(command("add", music, "--workers", 2, library=library), folder / "said")
        until = time.monotonic() + _LIMIT_S
        while not child.has_ended() and n_kills < 3 and time.monotonic() < until:
            time.sleep(rng.uniform(0.05, 0.6))
            for pid in child.workers()[-1:]:
                os.kill(pid, signal.SIGKILL)
                n_kills += 1
        lost += [complaint(child.wait(_LIMIT_S), (0, 3))]
        again = finish(command("add", music, library=library), folder / "said", _LIMIT_S)
        lost += [complaint(again)]
        with Library.open(library) as opened:
            lost += [f"{len(opened)} of 30 songs"] * (len(opened) != 30)
            lost += [str(failure.reason) for failure in opened.files.failures()]
        return Tried(max(1, n_kills), tuple(filter(None, [*lost, *faults_of(library)])))

    yield attempt


@contextmanager
def jobs_killed(folder: Path) -> Iterator[Attempt]:
    """Kill jobs of the app: they count as interrupted, and the same job resumes."""
    music, base = common_music(folder), part_library(folder)
    kinds = (("add", {"paths": [str(music)]}), ("scan", {}), ("refresh", {"force": True}))

    def attempt(rng: np.random.Generator) -> Tried:
        library, lost = copied(base, folder / "library"), []
        kind, arguments = kinds[rng.integers(len(kinds))]
        with Library.open(library) as opened:
            job_id = jobs.start(opened, kind, arguments)
            time.sleep(rng.uniform(0.0, 6.0))
            pid = opened.jobs.get(job_id).pid
            os.killpg(pid, signal.SIGKILL)
            until = time.monotonic() + 30.0
            while jobs.current(opened) is not None and time.monotonic() < until:
                time.sleep(0.05)
            state = opened.jobs.get(job_id).state
            if state not in ("interrupted", "done"):
                lost.append(f"{kind}: a killed job is {state}")
            again = opened.jobs.create(kind, arguments)
        ended = finish(command("run-job", library, again, library=library), folder / "said", _LIMIT_S)
        lost += [complaint(ended)]
        return Tried(1, tuple(filter(None, [*lost, *faults_of(library)])))

    yield attempt


@contextmanager
def two_writers(folder: Path) -> Iterator[Attempt]:
    """Run two commands that change one library at once: each completes, or reports that another one is writing."""
    music, base = common_music(folder), part_library(folder)
    plays = folder / "plays.csv"
    plays.write_text("listener,artist,title,plays\n" + "".join(f"l{n},Artist 0,Song 0 0,1\n" for n in range(9_000)))
    some = (
        ("add", music), ("scan",), ("import", plays), ("edit", 1, "--title", "Other"), ("backup", folder / "b"),
        ("settings", "shortest_s", 1), ("train", "--from", "genre", "--strength", 100, "--name", "mine"),
    )  # fmt: skip

    def attempt(rng: np.random.Generator) -> Tried:
        library, lost = copied(base, folder / "library"), []
        children = []
        for n, which in enumerate(rng.choice(len(some), 2)):
            children.append((Child(command(*some[which], library=library), folder / f"said {n}"), some[which][0]))
            time.sleep(rng.uniform(0.0, 0.5))
        for child, name in children:
            ended = child.wait(_LIMIT_S)
            is_said = ended.code == 1 and "another musicsim" in ended.said
            wrong = "" if is_said else complaint(ended)
            # the thirty songs are being added, so there may be too few to learn from
            lost += [f"{name}: {wrong}"] * bool(wrong and not (name == "train" and ended.code == 1))
        return Tried(2, (*lost, *faults_of(library)))

    yield attempt
