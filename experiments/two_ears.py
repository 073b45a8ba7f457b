"""Two ears: are dividing triples found, and is a playlist for both fair? A simulation with known tastes.

Pairs of simulated listeners judge the songs of the demo collection, by weights of the dimensions of Sound:

- weights: both have independent weights exp(1.5 z), with normal z
- parts: one hears only timbre and the other only rhythm
- same: both have the same weights. They still disagree, because their answers are random to some degree

A listener chooses a rather than b with probability 1 / (1 + exp(-s m)), where m is the margin in the listener's own
metric. The more probable answer has a probability of 0.88 on average. Each listener answers random questions (which of
two songs is more like a third?). A diagonal metric is learned from the answers as in the app, with C = 1e4. Its
held-out accuracy has Wilson's interval. *Shown* counts the pairs whose tastes differ according to the first person's
answers. The app requires this, so only these pairs count in the precision.

*Precision* is the mean probability, under the true metrics, that the two disagree on the 12 triples that are predicted
first, or on 20,000 random triples. *Predicted* is this probability as the method estimates it. *Known tastes* are the
12 best triples if both metrics and slopes are known. *Unchecked* is the precision over all pairs, as if no difference
were required.

Playlists have 12 songs, from five random first songs per pair, without artist spacing. *Worse off* is the smaller of
the two mean closenesses under the true metrics: the share of songs that are farther from the previous song. *One's own*
is the mean over both people's own playlists, from their learned models. Intervals resample pairs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import SHARE_3, Column, Table, drop_zeros, list_columns
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, format_lead, main
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.learning.from_answers import Answered, learn_from_answers, shares_in_order
from musicsim.explorer.snapshot.factors import RHYTHM, TIMBRE, Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.trials.rates import Rate, estimate_rate
from musicsim.extensions.two_ears.disagreement import (
    N_TRIPLES,
    DividingTriples,
    choice_probabilities,
    draw_triples,
    fit_slope,
    is_difference,
    measure_margins,
)
from musicsim.extensions.two_ears.lists import choose_rows, favor_worse_off

KINDS = ("weights", "parts", "same")
N_ANSWERS = (100, 300)
N_PAIRS = {False: 15, True: 60}
CS = (1e4,)
SPREAD, CERTAINTY = 1.5, 0.88
N_FOUND, LENGTH, N_FIRST = 12, 12, 5
LISTS = ("both", "average", "one's own")


@dataclass(frozen=True, slots=True)
class Listener:
    """A simulated listener: the songs in the listener's own metric, and the slope of the choices."""

    X: Float64Array
    slope: float

    @classmethod
    def with_weights(cls, X: Float64Array, weights: Float64Array, random: Int64Array) -> "Listener":
        """Return a listener who weights squared differences; `random` triples set the slope."""
        own = X * np.sqrt(weights)
        return cls(own, fit_slope(measure_margins(own, random), CERTAINTY))

    def predict(self, triples: Int64Array) -> Float64Array:
        """Return the probability of choosing a in triples (q, a, b)."""
        return choice_probabilities(measure_margins(self.X, triples), self.slope)

    def answer(self, n: int, rng: np.random.Generator) -> Answered:
        """Return the answers to n random questions."""
        triples = draw_triples(len(self.X), 2 * n + 20, rng)[:n]
        is_first = rng.random(n) < self.predict(triples)
        answered = Answered([], [])
        for (q, a, b), chose_a in zip(triples.tolist(), is_first.tolist(), strict=True):
            near, far = (a, b) if chose_a else (b, a)
            answered.comparisons.append(np.array([(q, near, q, far)]))
            answered.questions.append(("like", q, *sorted((a, b))))
        return answered


@dataclass(frozen=True, slots=True)
class Trial:
    """Results of one pair; precision and prediction are nan if no triple was predicted."""

    is_shown: bool
    n_dividing: int
    precision: float
    predicted: float
    random: float
    known: float
    worse_off: tuple[float, ...]  # by list, in the order of LISTS


def draw_listeners(kind: str, X: Float64Array, parts: list[BoolArray], rng: np.random.Generator) -> list[Listener]:
    """Return two listeners."""
    random = draw_triples(len(X), N_TRIPLES, rng)
    if kind == "parts":
        weights = [columns.astype(np.float64) for columns in parts]
    else:
        weights = [np.exp(SPREAD * rng.standard_normal(X.shape[1])) for _ in range(2)]
        weights = [weights[0]] * 2 if kind == "same" else weights
    return [Listener.with_weights(X, one, random) for one in weights]


def disagreement(listeners: list[Listener], triples: Int64Array) -> float:
    """Return the mean probability that two listeners disagree."""
    one, other = (listener.predict(triples) for listener in listeners)
    return float((one * (1 - other) + (1 - one) * other).mean()) if len(triples) else float("nan")


def try_pair(kind: str, n: int, X: Float64Array, parts: list[BoolArray], seed: int, number: int) -> Trial:
    """Simulate one pair of listeners with n answers each."""
    rng = np.random.default_rng([seed, KINDS.index(kind), number])
    listeners = draw_listeners(kind, X, parts, rng)
    answers = [listener.answer(n, rng) for listener in listeners]
    spaces, accuracies = [], []
    for answered in answers:
        judged = learn_from_answers(X, answered, Cs=CS, structure="diagonal", on_progress=lambda *_: False)
        assert judged.lead is not None
        spaces.append(X @ judged.L.T)
        accuracies.append(estimate_rate(judged.lead.after, n))
    crossed = estimate_rate(float(shares_in_order(spaces[1], answers[0]).mean()), n)
    model = DividingTriples(random_state=rng).fit(spaces, accuracies)
    found = model.find(N_FOUND)
    known = DividingTriples(random_state=rng).fit(
        [one.X for one in listeners], [Rate(CERTAINTY, 1, CERTAINTY, CERTAINTY)] * 2
    )
    predicted = model.predict_disagreement(found)[:, 0]
    firsts = rng.choice(len(X), N_FIRST, replace=False)
    return Trial(
        is_difference(accuracies[0], crossed),
        len(model.find()),
        disagreement(listeners, found),
        float(predicted.mean()) if len(found) else float("nan"),
        disagreement(listeners, model.triples_),
        disagreement(listeners, known.find(N_FOUND)),
        tuple(
            float(np.mean([one for first in firsts for one in worse_off(name, spaces, listeners, first)]))
            for name in LISTS
        ),
    )


def worse_off(name: str, spaces: list[Float64Array], listeners: list[Listener], first: int) -> Iterator[float]:
    """Yield the mean closeness, under the true metrics, of the person who is worse off, for each list of this name."""
    aims = {
        "both": [favor_worse_off], "average": [lambda sums: sums.sum(axis=0)],
        "one's own": [lambda sums: sums[0], lambda sums: sums[1]],
    }  # fmt: skip
    artists = np.full(len(spaces[0]), -1)
    for aim in aims[name]:
        rows, _ = choose_rows(spaces, int(first), LENGTH, artists=artists, aim=aim)
        yield min(mean_closeness(listener.X, rows) for listener in listeners)


def mean_closeness(X: Float64Array, rows: list[int]) -> float:
    """Return the mean share of songs that are farther from a song of a playlist than the next one, by brute force."""
    shares = []
    for previous, row in pairwise(rows):
        apart = ((X - X[previous]) ** 2).sum(axis=1)
        shares.append(np.count_nonzero(np.delete(apart, [previous, row]) > apart[row]) / (len(X) - 2))
    return float(np.mean(shares))


def _lead(a: Float64Array, b: Float64Array, seed: int) -> tuple[float, float, float] | None:
    known = ~(np.isnan(a) | np.isnan(b))
    return bootstrap_pairs(a[known], b[known], random_state=seed) if known.sum() > 1 else None


def _mean_known(values: Float64Array) -> float | None:
    return float(np.nanmean(values)) if np.isfinite(values).any() else None


def _told(lead: tuple[float, float, float] | None) -> str | None:
    return None if lead is None else format_lead(*lead)


def summarize(kind: str, n: int, trials: list[Trial], seed: int) -> tuple[Row, list[Claim]]:
    """Return the row of one kind of pair, and its claims."""
    names = ("precision", "random", "predicted")
    precision, random, predicted = (np.array([getattr(trial, name) for trial in trials]) for name in names)
    worse = np.array([trial.worse_off for trial in trials])
    is_shown = np.array([trial.is_shown for trial in trials])
    unchecked, precision = precision, np.where(is_shown, precision, np.nan)
    ahead = _lead(precision, random, seed)
    mean = _mean_known(precision)
    row: dict[str, object] = {
        "listeners": kind, "answers": n, "pairs": len(trials),
        "shown": int(is_shown.sum()),
        "dividing, share of triples": float(np.mean([trial.n_dividing for trial in trials]) / N_TRIPLES),
        "precision": mean,
        "predicted": _mean_known(predicted[is_shown]),
        "random": float(random.mean()), "lead": _told(ahead),
        "unchecked": _mean_known(unchecked),
        "known tastes": None if kind == "same" else float(np.mean([trial.known for trial in trials])),
    }  # fmt: skip
    for at, name in enumerate(LISTS):
        row[f"worse off, {name}"] = float(worse[:, at].mean())
    fair = {name: _lead(worse[:, 0], worse[:, at], seed) for at, name in enumerate(LISTS) if at}
    row |= {f"lead over {name}": _told(lead) for name, lead in fair.items()}
    if kind == "same":
        return row, [at_most(f"{kind}, {n} answers: pairs with a difference shown", int(is_shown.sum()), 1)]
    goals = [(f"{kind}, {n} answers: precision", mean, 0.7)]
    goals.append((f"{kind}, {n} answers: lower end of the lead over random triples", ahead and ahead[1], 0.0))
    goals += [
        (f"{kind}, {n} answers: worse off, lower end of the lead over {w}", lead and lead[1], 0.0)
        for w, lead in fair.items()
    ]
    return row, [
        Claim(words, value, f"above {goal}", value is not None and value > goal) for words, value, goal in goals
    ]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Simulate all pairs."""
    seed, n_pairs = settings.seed, N_PAIRS[settings.full]
    with demo_library(seed, progress) as library:
        factors = Factors(take_snapshot(library))
        X = np.asarray(factors.sound.X, dtype=np.float64)
    parts = [factors.columns[name] for name in (TIMBRE, RHYTHM)]
    settings.facts.update({"songs": len(X), "dimensions": X.shape[1], "pairs": n_pairs, "C": CS})
    rows: list[Row] = []
    claims: list[Claim] = []
    for kind in KINDS:
        for n in N_ANSWERS:
            trials = []
            for number in range(n_pairs):
                trials.append(try_pair(kind, n, X, parts, seed, number))
                progress(f"{kind}, {n} answers: {number + 1} of {n_pairs} pairs")
            row, more = summarize(kind, n, trials, seed)
            rows.append(row)
            claims += more
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "two_ears": list_columns(
        Column("listeners", "listeners"),
        Column("answers", "answers"),
        Column("difference shown", lambda row: f"{row['shown']} of {row['pairs']} pairs"),
        Column("precision", "precision", SHARE_3, absent="–"),
        Column("random triples", "random", SHARE_3),
        Column("lead", lambda row: row["lead"] or None, drop_zeros, absent="–"),
        Column("worse off: list for both", "worse off, both", SHARE_3),
        Column("average list", "worse off, average", SHARE_3),
        Column("own lists", "worse off, one's own", SHARE_3),
    )
}


if __name__ == "__main__":
    main(
        "two_ears", __doc__.splitlines()[0], run,
        short="15 of 60 pairs of listeners. This is final, because every interval of the lead over random triples "
        "excludes 0",
    )  # fmt: skip
