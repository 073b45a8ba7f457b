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
class TrialResults:
    """Numbers for A, B, or both; means are None without songs."""

    trial: Trial
    n_heard: int  # number of songs with an outcome
    n: dict[str, int]  # songs that count, by model: not first songs of a sitting, songs of both, or after the verdict
    skipped: dict[str, float | None]  # share of skips by model
    difference: float | None  # mean of the estimates of A's outcome minus B's
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
    d, skips = d[:n], {letter: skips[:n][signs[:n] == own] for letter, own in (("A", 1.0), ("B", -1.0))}
    observed = _mean(d) or 0.0
    return TrialResults(
        trial, len(heard), {letter: len(own) for letter, own in skips.items()},
        {letter: _mean(own) for letter, own in skips.items()}, _mean(d), sequence.find_interval(d),
        {1: "A", -1: "B", 0: ""}[sign], sequence.forecast_songs(d, observed),
        sequence.forecast_songs(d, float(np.copysign(_USUAL, observed))),
    )  # fmt: skip


def _mean(values: ArrayLike) -> float | None:
    return float(np.mean(values)) if np.size(values) else None


def describe(results: TrialResults) -> list[str]:
    """Describe the results in a few sentences."""
    n, skipped = sum(results.n.values()), results.skipped
    told = [f"{count(n, 'song')} counted, {count(results.n_heard - n, 'other')} did not."]
    if skipped["A"] is not None and skipped["B"] is not None and results.difference is not None:
        low, high = (f"{100 * end:+.0f}" for end in results.interval)
        told.append(f"You skipped {skipped['A']:.0%} of A's songs and {skipped['B']:.0%} of B's.")
        told.append(f"A is {100 * results.difference:+.0f} points ahead (95% interval {low} to {high}).")
    if results.verdict:
        told.append(f"Verdict: you prefer {results.verdict}.")
    else:
        told.append(f"No verdict yet. With a difference of 8 points, it takes {_songs(results.n_more_usual)} more.")
        if n:
            told.append(f"With the observed difference, it takes {_songs(results.n_more)} more.")
    return [*told, *(f"{letter} is “{name}”." for letter, name in results.names.items())]


def _songs(n: int | None) -> str:
    return "over a million songs" if n is None else f"about {count(n, 'song')}"


def results_of(library: Library) -> TrialResults:
    """Return the results of the newest trial; raises NotFoundError if there is no trial."""
    trial = RadioStore(library).known()
    return summarize(trial, RadioStore(library).heard(trial))


def export_csv(library: Library) -> bytes:
    """Return the heard songs of the newest trial as CSV, without the names of the models."""
    heard = RadioStore(library).heard(RadioStore(library).known())
    songs = {song.id: (song.title, song.artist) for song in library.songs([turn.song_id for turn in heard])}
    rows = (
        (f"{datetime.fromtimestamp(t.event_at or 0.0, UTC):%Y-%m-%dT%H:%M:%SZ}", t.song_id,
         *songs.get(t.song_id, ("", "")), t.arm, t.song_a, t.song_b, t.is_skip, t.is_first, t.outcome, t.counts)
        for t in heard
    )  # fmt: skip
    return as_csv(_COLUMNS, rows)
