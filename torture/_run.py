"""Running steps within a time limit, and the table of their outcomes."""

import time
import traceback
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["NotHere", "Outcome", "Step", "Tried", "run_steps", "table"]


class NotHere(Exception):
    """A requirement of a step is not available on this machine."""


@dataclass(frozen=True)
class Tried:
    """The outcome of one attempt."""

    n: int = 1  # number of files, kills or flips
    lost: tuple[str, ...] = ()  # everything that was lost, or failed without a proper sentence
    slowest: float | None = None  # seconds of the slowest of them; None: of the attempt


Attempt = Callable[[np.random.Generator], Tried]


@dataclass(frozen=True)
class Step:
    """An attempt that is repeated with new random choices."""

    name: str
    wanted: int  # attempts in the full form
    share: float  # of the time
    prepare: Callable[[Path], AbstractContextManager[Attempt]]
    is_long: bool = False  # left out of short runs


@dataclass
class Outcome:
    """The outcome of a step."""

    name: str
    wanted: int
    n: int = 0
    lost: list[str] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0
    note: str = ""


def run_steps(
    steps: Sequence[Step], folder: Path, seconds: float, seed: int, first: int, say: Callable[[str], None]
) -> list[Outcome]:
    """Repeat each step until it has its number of attempts or its share of the remaining time, at least once."""
    ends, outcomes = time.monotonic() + seconds, []
    for number, step in enumerate(steps):
        share = step.share / sum(later.share for later in steps[number:])
        until = time.monotonic() + share * max(0.0, ends - time.monotonic())
        place = folder / step.name.replace(" ", "-")
        place.mkdir(parents=True, exist_ok=True)
        outcome = Outcome(step.name, step.wanted)
        started = time.monotonic()
        try:
            with step.prepare(place) as attempt:
                _try(step, attempt, outcome, until, (seed, first))
        except NotHere as reason:
            outcome.note = str(reason)
        outcome.seconds = time.monotonic() - started
        outcomes.append(outcome)
        say(_line(outcome))
        for lost in outcome.lost:
            say(f"    {lost}")
    return outcomes


def _try(step: Step, attempt: Attempt, outcome: Outcome, until: float, seeds: tuple[int, int]) -> None:
    seed, number = seeds
    while outcome.n < step.wanted and (outcome.n == 0 or time.monotonic() < until):
        rng = np.random.default_rng([seed, zlib.crc32(step.name.encode()), number])
        began = time.monotonic()
        try:
            tried = attempt(rng)
        except Exception:
            tried = Tried(1, (traceback.format_exc(limit=-3),))
        took = time.monotonic() - began
        outcome.n += tried.n
        outcome.slowest = max(outcome.slowest, took if tried.slowest is None else tried.slowest)
        outcome.lost += [f"{step.name} {number}: {lost}" for lost in tried.lost]
        number += 1


def _line(outcome: Outcome) -> str:
    if outcome.note:
        return f"| {outcome.name} | – | – | – | – | {outcome.note} |"
    n_lost = len(outcome.lost)
    cut = f"of {outcome.wanted:,}" if outcome.n < outcome.wanted else ""
    return (
        f"| {outcome.name} | {outcome.n:,} {cut} | {max(0, outcome.n - n_lost):,} | {n_lost:,} | "
        f"{outcome.slowest:.1f} | {outcome.seconds:.0f} s |"
    ).replace("  |", " |")


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a Markdown table of the steps: attempts, survived, lost, the slowest and total seconds."""
    head = ["| what | tried | survived | lost | slowest, s | time |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *map(_line, outcomes)])
