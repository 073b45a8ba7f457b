"""Several examples: which formula for "like these" and "less like this" ranks real music best?

"one composer": some pieces of a composer are the examples, and their other pieces are relevant. "two composers": one
piece of each; pieces by either are relevant. "less like": the examples are by one composer. The composer of the first
wrong piece in the list is unwanted. Results should be less like some of their pieces. Examples of either kind are not
ranked. MAP is over all other pieces; "unwanted" is the share of the unwanted composer's pieces among the first ten.
Leads are over the first row of a part, with 95 % intervals over the composers. Distances are adjusted against hubs as
in the app, unless noted.

Pieces and labels are those of experiments.real_music: a library (``--library``), with its own ``--labels``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, format_lead, main
from experiments.support.game_music import LABELS
from experiments.support.pieces import Pieces, labelled, open_copy
from experiments.support.timbre import model_vectors
from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.refresh.refresh import refresh
from musicsim.metric import feedback_metric
from musicsim.search import MutualProximity

MIN_PIECES = 8
"""Of a composer: enough are left to be found where five are examples."""
N_EXAMPLES, N_UNLIKE = (2, 3, 5), (1, 3)
CHOSEN_LIKE, CHOSEN_UNLIKE = "power mean, -2", "less 0.5 of the nearness"
_LOOKED_AT = 10


class Space:
    """Vectors of the pieces, their distances, and the distances after hub reduction."""

    def __init__(self, X: Float64Array) -> None:
        self.X, self._proximity = X, MutualProximity().fit(X)
        self.D = np.stack([np.linalg.norm(X - x, axis=1) for x in X])
        self.adjusted = np.stack([self.rescored(x, d) for x, d in zip(X, self.D, strict=True)])

    def rescored(self, point: Float64Array, distances: Float64Array) -> Float64Array:
        """Return distances of all pieces from a point, after hub reduction."""
        moments = self._proximity.moments(point[None, :])
        return self._proximity.rescore(distances, np.arange(len(self.X)), moments)

    def centroid(self, like: Int64Array) -> Float64Array:
        """Return distances from the mean of some pieces."""
        point = self.X[like].mean(axis=0)
        return self.rescored(point, np.linalg.norm(self.X - point, axis=1))

    def bent(self, like: Int64Array, unlike: Int64Array) -> Float64Array:
        """Return distances after thumbs: the first example is the query, the others get thumbs up, `unlike` down."""
        point = self.X[like[0]]
        bending = feedback_metric(point, self.X[like[1:]], self.X[unlike])
        return self.rescored(point, np.asarray(bending.distances(self.X)))

    def nearness(self, rows: Int64Array) -> Float64Array:
        """Return the mean inverse squared distance."""
        return np.mean(np.maximum(self.adjusted[rows], 1e-6) ** -2.0, axis=0)


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of examples and of what results should be less like, and masks of relevant and unwanted pieces."""

    composer: str
    like: Int64Array
    unlike: Int64Array
    is_right: BoolArray
    is_unwanted: BoolArray


Score = Callable[[Space, Case], Float64Array]
"""What all pieces are ranked by, the smallest first."""


def _power(p: float) -> Score:
    return lambda space, case: np.mean(np.maximum(space.adjusted[case.like], 1e-6) ** p, axis=0) ** (1 / p)


def _less(weight: float) -> Score:
    return lambda space, case: weight * space.nearness(case.unlike) - space.nearness(case.like)


def _less_distance(weight: float) -> Score:
    usual = _power(-2.0)
    return lambda space, case: usual(space, case) - weight * space.adjusted[case.unlike].mean(axis=0)


LIKE: dict[str, Score] = {
    "mean distance": _power(1.0),
    "mean distance, hubs not adjusted": lambda space, case: space.D[case.like].mean(axis=0),
    "mean squared distance": _power(2.0),
    CHOSEN_LIKE: _power(-2.0),
    "power mean, -4": _power(-4.0),
    "nearest example": lambda space, case: space.adjusted[case.like].min(axis=0),
    "centroid": lambda space, case: space.centroid(case.like),
    "first example, others as thumbs": lambda space, case: space.bent(case.like, case.unlike),
}
UNLIKE: dict[str, Score] = {
    "left out of the list": _power(-2.0),
    **{f"less {weight} of the distance": _less_distance(weight) for weight in (0.1, 0.25, 0.5)},
    **{f"less {weight} of the nearness": _less(weight) for weight in (0.1, 0.25, 0.5, 1.0)},
    "thumbs down": lambda space, case: space.bent(case.like, case.unlike),
}


def evaluate(space: Space, case: Case, score: Score) -> tuple[float, float]:
    """Return average precision, and the share of unwanted pieces among the first ten."""
    is_ranked = np.ones(len(space.X), dtype=bool)
    is_ranked[np.concatenate([case.like, case.unlike])] = False
    rows = np.flatnonzero(is_ranked)
    order = rows[np.argsort(score(space, case)[rows], kind="stable")]
    places = np.flatnonzero(case.is_right[order])
    precision = np.mean((np.arange(len(places)) + 1) / (places + 1))
    return float(precision), float(case.is_unwanted[order[:_LOOKED_AT]].mean())


def _rows(part: str, space: Space, ways: dict[str, Score], cases: list[Case], seed: int) -> list[dict[str, Any]]:
    found = {name: np.array([evaluate(space, case, score) for case in cases]) for name, score in ways.items()}
    composers = [case.composer for case in cases]
    first = next(iter(found.values()))
    rows = []
    for name, values in found.items():
        row: dict[str, Any] = {"part": part, "formula": name, "MAP": float(values[:, 0].mean())}
        mean, low, high = bootstrap_pairs(values[:, 0], first[:, 0], composers, random_state=seed)
        row |= {"lead": format_lead(mean, low, high), "low": low}
        if part.startswith("less"):
            row["unwanted"] = float(values[:, 1].mean())
        rows.append(row)
    return rows


def _cases(space: Space, pieces: Pieces, settings: Settings) -> dict[str, list[Case]]:
    names, counts = np.unique(pieces.composers[pieces.composers != ""], return_counts=True)
    composers = names[counts >= MIN_PIECES]
    n = 80 if settings.full else 30
    settings.facts.update(pieces=len(pieces), composers=len(composers), queries_a_composer=n)
    rng = np.random.default_rng(settings.seed)
    nothing, nobody = np.empty(0, np.int64), np.zeros(len(pieces), dtype=bool)
    cases: dict[str, list[Case]] = {}
    for name in composers.tolist():
        is_theirs = pieces.composers == name
        own = np.flatnonzero(is_theirs)
        for _ in range(n):
            for k in N_EXAMPLES:
                like = rng.choice(own, k, replace=False)
                cases.setdefault(f"one composer, {k} examples", []).append(Case(name, like, nothing, is_theirs, nobody))
            other = pieces.composers == rng.choice(composers[composers != name])
            like = np.array([rng.choice(own), rng.choice(np.flatnonzero(other))])
            cases.setdefault("two composers", []).append(Case(name, like, nothing, is_theirs | other, nobody))
            for k in (1, 3):
                like = rng.choice(own, k, replace=False)
                order = np.argsort(-space.nearness(like), kind="stable")
                is_wrong = np.isin(pieces.composers, composers) & ~is_theirs
                unwanted = pieces.composers == pieces.composers[order[is_wrong[order]][0]]
                for n_unlike in N_UNLIKE:
                    unlike = rng.choice(np.flatnonzero(unwanted), n_unlike, replace=False)
                    part = f"less like {n_unlike}, {k} example{'s' * (k > 1)}"
                    cases.setdefault(part, []).append(Case(name, like, unlike, is_theirs, unwanted))
    return cases


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every part and formula."""
    with open_copy(settings) as library:
        refresh(library)
        pieces = labelled(library, settings.labels or LABELS)
        native = library.models.native()
        assert native is not None
        space = Space(model_vectors(library, pieces, native.id))
    rows: list[Row] = []
    claims: list[Claim] = []
    for part, cases in _cases(space, pieces, settings).items():
        is_less = part.startswith("less")
        found = _rows(part, space, UNLIKE if is_less else LIKE, cases, settings.seed)
        chosen = next(row for row in found if row["formula"] == (CHOSEN_UNLIKE if is_less else CHOSEN_LIKE))
        if is_less:
            claims.append(at_most(f"{part}: unwanted, of what it was", chosen["unwanted"] / found[0]["unwanted"], 0.9))
        else:
            claims.append(at_least(f"{part}: low end of the lead over the mean", chosen["low"], -0.02))
        rows += [{key: value for key, value in row.items() if key != "low"} for row in found]
        progress(part)
    return rows, claims


if __name__ == "__main__":
    main(
        "several_examples", __doc__.splitlines()[0], run, takes_library=True, takes_music=True,
        short="30 of 80 queries per composer",
    )  # fmt: skip
