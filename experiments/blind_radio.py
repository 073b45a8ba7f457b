"""Blind radio: how many songs a verdict takes, and how often it is false if one looks after every song. A simulation.

A listener skips a fifth of model A's songs (19%) and more of B's. A skip comes after 5 to 30 s, all equally likely. A
coin chooses the model of each song, and the outcomes are those of the app. The result is looked at after each of 12,000
songs. "Varying" listeners skip 5% to 33% of both models' songs, in a slow wave over 200 songs. For "alternating"
listeners, B is 15 points worse in odd songs and 15 points better in even ones.

"Interval misses" is the share of runs whose interval ever excludes the true difference. "Usual interval" is the share
of runs in which the usual 95% interval (the mean and 1.96 standard errors) ever excludes 0 after song 40.
"""

from typing import Any

import numpy as np

from benchmarks.support.columns import Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Settings, at_most, main
from musicsim._arrays import Float64Array
from musicsim.explorer.trials.sequence import estimate_differences, find_verdict, log_wealth
from musicsim.extensions.blind_radio.store import outcome_of

N_SONGS = 12_000
BASE = 0.19
LISTENERS = {"equal": 0.0, "varying": 0.0, "alternating": 0.0, "15 points": 0.15, "8 points": 0.08, "3 points": 0.03}
N_RUNS = 2_000
_BLOCK = 50  # number of runs in memory at a time
_FIRST_LOOK = 40  # of the usual interval
_LIMIT = np.log(2.0 / 0.05)
_SONG_S = 240.0
_SKIP_S = np.arange(5, 30)  # whole seconds, as the player reports them


def simulate(listener: str, n_runs: int, n_songs: int, rng: np.random.Generator) -> tuple[Float64Array, float]:
    """Return estimates of the difference A - B, (n_runs, n_songs), and the true difference in the outcome."""
    skips = np.array([outcome_of(float(seconds), _SONG_S) for seconds in _SKIP_S])
    songs, gap = np.arange(n_songs), LISTENERS[listener]
    base = BASE + 0.14 * np.sin(songs / 200 * 2 * np.pi) * (listener == "varying")
    worse = gap + (0.15 * (-1.0) ** songs) * (listener == "alternating")
    signs = rng.choice([1.0, -1.0], (n_runs, n_songs))
    is_skip = rng.random((n_runs, n_songs)) < np.where(signs > 0, base, base + worse)
    outcomes = np.where(is_skip, rng.choice(skips, (n_runs, n_songs)), 1.0)
    return estimate_differences(signs, outcomes), gap * float(1.0 - skips.mean())


def usual_interval_excludes_zero(d: Float64Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return, for each run, whether the usual interval ever excludes 0."""
    n = np.arange(1, d.shape[-1] + 1)
    means = np.cumsum(d, axis=-1) / n
    errors = np.sqrt(np.maximum(np.cumsum(d * d, axis=-1) / n - means**2, 0.0) / n)
    return (np.abs(means) > 1.96 * errors)[..., _FIRST_LOOK - 1 :].any(axis=-1)


def measure(listener: str, n_runs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the row of a kind of listener."""
    verdicts: list[tuple[int, int]] = []
    n_missed = n_usual = 0
    for _ in range(n_runs // _BLOCK):
        d, true = simulate(listener, _BLOCK, N_SONGS, rng)
        verdicts += [find_verdict(run) for run in d]
        rejected = np.maximum(log_wealth(d, true).max(axis=-1), log_wealth(-d, -true).max(axis=-1)) >= _LIMIT
        n_missed += int(rejected.sum())
        n_usual += int(usual_interval_excludes_zero(d).sum())
    has_difference = bool(LISTENERS[listener])
    lengths = np.array([n if sign == 1 else np.inf for sign, n in verdicts])
    median, most = np.quantile(lengths, (0.5, 0.8), method="inverted_cdf") if has_difference else (np.inf, np.inf)
    is_false = [sign == -1 or (sign == 1 and not has_difference) for sign, _ in verdicts]
    return {
        "listener": listener, "songs, median": _finite(median), "songs, 80%": _finite(most),
        "verdicts": float(np.mean([sign != 0 for sign, _ in verdicts])), "false": float(np.mean(is_false)),
        "interval misses": n_missed / len(verdicts), "usual interval": n_usual / len(verdicts),
    }  # fmt: skip


def _finite(number: float) -> int | None:
    return int(number) if np.isfinite(number) else None


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Simulate every kind of listener."""
    from scipy.stats import binomtest

    rows, claims = [], []
    for number, listener in enumerate(LISTENERS):
        row = measure(listener, N_RUNS, np.random.default_rng([settings.seed, number]))
        rows.append(row)
        for what, share in (("false verdicts", row["false"]), ("intervals that ever miss", row["interval misses"])):
            low = binomtest(round(share * N_RUNS), N_RUNS).proportion_ci(method="wilson").low
            claims.append(at_most(f"{listener}: share of {what}, low end of 95 %", low, 0.05))
        progress(listener)
    settings.facts.update(songs=N_SONGS, base=BASE, runs=N_RUNS)
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


_DIFFERENCES = {
    "equal": "none", "varying": "none, varying", "alternating": "none on average, alternating",
}  # fmt: skip


TABLES: dict[str, Table] = {
    "blind_radio": list_columns(
        Column("difference in skips", lambda row: _DIFFERENCES.get(row["listener"], row["listener"])),
        Column("songs to a verdict, median", "songs, median", "{:,}"),
        Column("80% of listeners", "songs, 80%", "{:,}"),
        Column("any verdict", "verdicts", "{:.1%}"),
        Column("false verdict", "false", "{:.1%}"),
        Column("interval ever misses", "interval misses", "{:.1%}"),
        Column("usual 95% interval ever excludes 0", "usual interval", "{:.1%}"),
    )
}


if __name__ == "__main__":
    main("blind_radio", __doc__.splitlines()[0], run)
