"""The state of a trial: each model's outcomes, their difference with its interval, and the verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.explorer import estimate_differences, find_interval, find_verdict, forecast_songs
from musicsim.extensions.blind_radio.store import RadioStore, Trial, Turn
from musicsim.library import Library, as_csv
from musicsim.wording import count

_USUAL = 0.08  # difference for which the number of songs to a verdict is always stated
_COLUMNS = (
    "time", "song", "title", "artist", "chosen_by", "song_a", "song_b", "is_skip", "is_first", "outcome", "counts",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrialResults:
    """The results of a trial by model, A and B, without its secrets; means are None without songs."""

    models: list[str]  # names, in alphabetical order
    names: dict[str, str]  # names by letter; empty until they are revealed
    started_at: float
    ended_at: float | None
    n_heard: int  # number of songs with an outcome
    n: dict[str, int]  # number of songs that count: not those of both, first songs, or songs after the verdict
    skipped: dict[str, float | None]  # share of skips
    difference: float | None  # mean of the estimates of A's outcome minus B's
    interval: tuple[float, float]
    verdict: str  # "A", "B" or ""
    n_more: int | None  # songs to a verdict if the true difference is the observed one; None if over a million
    n_more_usual: int | None  # the same for 8 points


def counts(turn: Turn) -> bool:
    """Return whether only one model chose the song, and it is not the first of a sitting."""
    return turn.arm != "both" and not turn.is_first


def summarize(trial: Trial, heard: Sequence[Turn]) -> TrialResults:
    """Return the results of a trial from its turns with outcomes, oldest first."""
    counted = list(filter(counts, heard))
    signs = np.array([1.0 if turn.arm == "A" else -1.0 for turn in counted])
    outcomes, skips = (np.array([getattr(t, name) for t in counted], dtype=float) for name in ("outcome", "is_skip"))
    d = estimate_differences(signs, outcomes)
    sign, n = find_verdict(d)
    d, by_arm = d[:n], {letter: skips[:n][signs[:n] == own] for letter, own in (("A", 1.0), ("B", -1.0))}
    names, observed = {"A": trial.name_a, "B": trial.name_b}, _mean(d)
    usual = math.copysign(_USUAL, observed or 0.0)
    return TrialResults(
        models=sorted(names.values()), names=names if trial.revealed_at else {},
        started_at=trial.started_at, ended_at=trial.ended_at, n_heard=len(heard),
        n={letter: len(own) for letter, own in by_arm.items()},
        skipped={letter: _mean(own) for letter, own in by_arm.items()},
        difference=observed, interval=find_interval(d), verdict={1: "A", -1: "B", 0: ""}[sign],
        n_more=forecast_songs(d, observed or 0.0), n_more_usual=forecast_songs(d, usual),
    )  # fmt: skip


def _mean(values: Float64Array) -> float | None:
    return float(values.mean()) if len(values) else None


def describe(results: TrialResults) -> list[str]:
    """Describe the results in a few sentences."""
    n, skipped = sum(results.n.values()), results.skipped
    told = [f"{count(n, 'song')} counted, {count(results.n_heard - n, 'other')} did not."]
    if skipped["A"] is not None and skipped["B"] is not None and results.difference is not None:
        low, high = (f"{100 * end:+.0f}" for end in results.interval)
        told.append(f"You skipped {skipped['A']:.0%} of A's songs and {skipped['B']:.0%} of B's.")
        told.append(f"Outcome, A minus B: {100 * results.difference:+.0f} points (95% interval {low} to {high}).")
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
    """Return the results of the newest trial; raises NotFoundError without one."""
    trial = RadioStore(library).get_latest()
    return summarize(trial, RadioStore(library).settle(trial))


def export_csv(library: Library) -> bytes:
    """Return the heard songs of the newest trial as CSV, without the names of the models."""
    heard = RadioStore(library).settle(RadioStore(library).get_latest())
    songs = {song.id: (song.title, song.artist) for song in library.songs([turn.song_id for turn in heard])}
    rows = (
        (f"{datetime.fromtimestamp(t.event_at or 0.0, UTC):%Y-%m-%dT%H:%M:%SZ}", t.song_id,
         *songs.get(t.song_id, ("", "")), t.arm, t.song_a, t.song_b, t.is_skip, t.is_first, t.outcome, counts(t))
        for t in heard
    )  # fmt: skip
    return as_csv(_COLUMNS, rows)
