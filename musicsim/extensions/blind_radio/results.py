"""The state of a trial: each model's outcomes, their difference with its interval, and the verdict."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from musicsim.extensions.blind_radio import sequence
from musicsim.extensions.blind_radio.store import RadioStore, Trial, Turn
from musicsim.library import Library
from musicsim.library.disk.csv_cells import as_csv
from musicsim.wording import count

_USUAL = 0.08  # difference for which the number of songs to a verdict is always told
_COLUMNS = (
    "time", "song", "title", "artist", "chosen_by", "song_a", "song_b", "is_skip", "is_first", "outcome", "counts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The songs of one model that count; shares and means are None without songs."""

    n: int
    skipped: float | None  # share of skips
    outcome: float | None  # mean outcome


@dataclass(frozen=True, slots=True)
class TrialResults:
    trial: Trial
    n_heard: int  # number of songs with an outcome
    n_counted: int  # except songs that both models chose, first songs of a sitting, and songs after the verdict
    a: ArmResult
    b: ArmResult
    difference: float | None  # mean of the estimates of the difference A - B in the outcome
    interval: tuple[float, float]
    verdict: str  # "A", "B" or ""
    n_more: int | None  # songs to a verdict if the true difference is the observed one; None if over a million
    n_more_usual: int | None  # the same for 8 points

    @property
    def names(self) -> dict[str, str]:
        """Names of the models by letter; empty until they are revealed."""
        trial = self.trial
        return {} if trial.revealed_at is None else {"A": trial.name_a, "B": trial.name_b}

    def as_json(self) -> dict[str, Any]:
        """Return the results for the command line, without the trial's secrets."""
        trial, found = self.trial, asdict(self)
        del found["trial"]
        times = {"started_at": trial.started_at, "ended_at": trial.ended_at}
        return {"models": sorted((trial.name_a, trial.name_b)), **times, **found, "names": self.names or None}


def summarize(trial: Trial, heard: Sequence[Turn]) -> TrialResults:
    """Return the results of a trial from its turns with outcomes, oldest first."""
    counted = [turn for turn in heard if turn.counts]
    signs = np.array([1.0 if turn.arm == "A" else -1.0 for turn in counted])
    outcomes = np.array([turn.outcome for turn in counted], dtype=np.float64)
    skips = np.array([bool(turn.is_skip) for turn in counted], dtype=np.float64)
    d = sequence.estimate_differences(signs, outcomes)
    sign, n = sequence.find_verdict(d)
    d, signs = d[:n], signs[:n]
    arms = (
        ArmResult(int(own.sum()), _mean(skips[:n][own]), _mean(outcomes[:n][own])) for own in (signs > 0, signs < 0)
    )
    observed = _mean(d) or 0.0
    more = (sequence.forecast_songs(d, gap) for gap in (observed, float(np.copysign(_USUAL, observed))))
    return TrialResults(
        trial, len(heard), n, *arms, _mean(d), sequence.find_interval(d), {1: "A", -1: "B", 0: ""}[sign], *more
    )


def _mean(values: ArrayLike) -> float | None:
    return float(np.mean(values)) if np.size(values) else None


def describe(results: TrialResults) -> list[str]:
    """Describe the results in a few sentences."""
    a, b, n = results.a, results.b, results.n_counted
    left_out = f" {count(results.n_heard - n, 'other song')} did not count." if results.n_heard > n else ""
    told = [f"{count(n, 'song')} counted.{left_out}"]
    if a.skipped is not None and b.skipped is not None and results.difference is not None:
        low, high = (f"{100 * end:+.0f}" for end in results.interval)
        told.append(f"You skipped {a.skipped:.0%} of A's {count(a.n, 'song')} and {b.skipped:.0%} of B's {b.n:,}.")
        told.append(f"A is {100 * results.difference:+.0f} points ahead (95% interval {low} to {high}).")
    if results.verdict:
        told.append(f"Verdict: you prefer {results.verdict}.")
    else:
        told.append(
            f"No verdict yet. With a true difference of 8 points, it takes {_songs(results.n_more_usual)} more."
        )
        if results.n_more is not None:
            told.append(f"With the observed difference, it takes {_songs(results.n_more)} more.")
    return [*told, *(f"{letter} is “{name}”." for letter, name in results.names.items())]


def _songs(n: int | None) -> str:
    return "over a million songs" if n is None else f"about {count(n, 'song')}"


def results_of(library: Library) -> TrialResults:
    """Return the results of the newest trial; raises NotFoundError if there is no trial."""
    store = RadioStore(library)
    trial = store.last()
    return summarize(trial, store.heard(trial))


def export_csv(library: Library) -> bytes:
    """Return the heard songs of the newest trial as CSV, without the names of the models."""
    store = RadioStore(library)
    heard = store.heard(store.last())
    songs = {song.id: (song.title, song.artist) for song in library.songs([turn.song_id for turn in heard])}
    times = (datetime.fromtimestamp(turn.event_at or 0.0, UTC).isoformat(timespec="seconds") for turn in heard)
    rows = (
        (time, turn.song_id, *songs.get(turn.song_id, ("", "")), turn.arm, turn.song_a, turn.song_b, turn.is_skip,
         turn.is_first, turn.outcome, turn.counts)
        for time, turn in zip(times, heard, strict=True)
    )  # fmt: skip
    return as_csv(_COLUMNS, rows)
