"""Public judgments of similarity: do learned metrics predict the votes of listeners better than plain distance?

``python -m experiments.public_judgments --labels comparisons_final.csv --music mp3`` reads the votes in MagnaTagATune
or dim-sim, and describes the clips by *Sound*. ``--library PATH`` takes the clips from a library instead of a folder.
The library of a folder is kept in ``data/experiments/public_judgments``, or in the folder of ``--cache``.

The protocol follows Stober and Nürnberger (2011) and Wolff and Weyde (2014). A vote for the odd one k of i, j, k says
that d(i, j) < d(i, k) and d(j, i) < d(j, k). Of two opposite comparisons, the one with more votes stays; at a tie, both
are dropped. Comparisons that would close a cycle are dropped too. Training and test votes are cleaned separately. There
are ten folds, and two ways to hold votes out:

- by triple: all votes on the same three clips are in one fold. Training questions may contain the same clips.
- by component: two clips are joined if a question contains both. All questions on a connected component of this graph
  are in one fold, so no clip of a test question is in training.

C is chosen on a held-out third of the training questions. The short form uses one split for this instead of three, and
stops fits earlier. There are two scores:

- majority: share of the cleaned test comparisons in order
- votes: share of all test votes in order, including votes against the majority

"Most" is the largest share of votes that any distance can reach. The ceiling is the share of votes that agree with
the majority of the other votes on the same comparison; a tie counts half. The 95 % intervals resample the held-out
groups: triples, or components. Those of "most" and of the ceiling resample components.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.support.report import Claim, Progress, Row, Settings, Skipped, at_least, digest, main
from experiments.support import game_music
from experiments.support.orders import (
    Method,
    Space,
    Split,
    everything,
    in_order,
    learn_chosen,
    order_score,
    questions_held_out,
)
from experiments.support.pieces import open_music
from experiments.support.surveys import agreed_by_all, agreed_by_others
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.learning.from_answers import relevance_of
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.library import Library
from musicsim.library.importing import PublicJudgments, VotedTriplets, load_judgments
from musicsim.library.importing.answer_csv import FiledSong
from musicsim.library.importing.answers import match_songs
from musicsim.metric import MLR
from musicsim.order import LinearPartialOrderEmbedding, clean_comparisons

CACHE = game_music.CACHE.parent / "public_judgments"
UNLEARNED, POE, POE_DIAGONAL, MLR_FULL = "unlearned", "POE, full", "POE, diagonal", "MLR-AUC, full"
BY_TRIPLE, BY_COMPONENT = "by triple", "by component"
MEASURES = ("majority", "votes")
N_FOLDS = 10


@dataclass(frozen=True, slots=True)
class Protocol:
    validations: int
    tol: float
    max_iter: int
    max_cuts: int
    order_grid: tuple[float, ...] = (10.0, 30.0, 100.0)
    mlr_grid: tuple[float, ...] = (3.0, 30.0, 300.0)


SHORT = Protocol(validations=1, tol=5e-2, max_iter=100, max_cuts=50)
FULL = Protocol(validations=3, tol=1e-2, max_iter=1000, max_cuts=200)


class Trial:
    """Questions about clips with vectors: votes as comparisons, and groups of questions that stay together."""

    def __init__(self, judged: PublicJudgments, X: Float64Array, seed: int) -> None:
        self.X, self.seed = X, seed
        self.questions = judged.questions
        self._voted = judged.triplets()
        self.triples: Int64Array = np.unique(np.sort(judged.questions, axis=1), axis=0, return_inverse=True)[1].ravel()
        self.components = component_of(judged.questions, len(X))

    def triplets(self, questions: Int64Array) -> VotedTriplets:
        """Return the triplets of some questions."""
        v, kept = self._voted, np.isin(self._voted.questions, questions)
        return VotedTriplets(v.triplets[kept], v.votes[kept], v.against[kept], v.questions[kept])

    def clean(self, questions: Int64Array) -> Int64Array:
        """Return the comparisons (m, 4) of some questions without contradictions."""
        votes = self.triplets(questions).comparisons
        return clean_comparisons(votes, contradictions="majority", reduce=False, random_state=self.seed)[0]

    def score(self, points: Float64Array, questions: Int64Array) -> dict[str, float]:
        """Return the score for validation."""
        return order_score(points, self.clean(questions))

    def methods(self, protocol: Protocol) -> Iterator[Method]:
        """Yield the methods with their values of C."""
        yield Method(UNLEARNED, lambda songs, *_: Space(self._scale(songs)))
        fits = {"tol": protocol.tol, "max_iter": protocol.max_iter}
        for name, structure in ((POE, "full"), (POE_DIAGONAL, "diagonal")):

            def fit(Z: Float64Array, rows: Int64Array, C: float, structure: str = structure) -> Float64Array:
                return LinearPartialOrderEmbedding(structure, C=C, **fits).fit(Z, rows).components_

            yield Method(name, partial(self._learn, fit), protocol.order_grid)

        def rank(Z: Float64Array, rows: Int64Array, C: float) -> Float64Array:
            model = MLR("auc", C=C, tol=protocol.tol, max_cuts=protocol.max_cuts)
            return model.fit(Z, relevance_of(rows, len(Z))).components_

        yield Method(MLR_FULL, partial(self._learn, rank), protocol.mlr_grid)

    def _scale(self, songs: Int64Array) -> Float64Array:
        """Divide by the root of the mean squared distance of the training clips, which leaves all orders alone."""
        centered = self.X - self.X[songs].mean(axis=0)
        return np.asarray(centered / np.sqrt(2.0 * self.X[songs].var(axis=0).sum()))

    def _learn(
        self, fit: Callable[[Float64Array, Int64Array, float], Float64Array],
        songs: Int64Array, questions: Int64Array, C: float,
    ) -> Space:  # fmt: skip
        Z = self._scale(songs)
        used, places = np.unique(self.clean(questions), return_inverse=True)
        return Space(Z @ fit(Z[used], places.reshape(-1, 4), C).T)

    def splits(self, groups: Int64Array, seed: int) -> list[Split]:
        """Return ten folds; training clips are those of the training questions."""
        whole = everything(len(self.X), len(self.questions))
        return [
            Split(np.unique(self.questions[split.train]), split.train, split.test)
            for split in questions_held_out(whole, groups, N_FOLDS, seed)
        ]


def component_of(questions: Int64Array, n_clips: int) -> Int64Array:
    """Return for each question the number of its component of the graph in which a question joins its clips."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.concatenate([questions[:, [0, 1]], questions[:, [0, 2]]])
    graph = coo_array((np.ones(len(ends)), ends.T), shape=(n_clips, n_clips))
    labels = connected_components(graph, directed=False)[1]
    return np.asarray(labels[questions[:, 0]], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Held:
    """Per comparison in the tests: the share in order, of each method, and the group that is resampled."""

    scores: dict[str, list[Float64Array]]
    groups: list[Int64Array]

    def interval(self, method: str, seed: int, reference: str | None = None) -> tuple[float, float, float]:
        own = np.concatenate(self.scores[method])
        base = np.zeros(len(own)) if reference is None else np.concatenate(self.scores[reference])
        return bootstrap_pairs(own, base, np.concatenate(self.groups), random_state=seed)


def measure(trial: Trial, by: str, protocol: Protocol, progress: Progress) -> list[Row]:
    """Return one row per method, with the agreement on held-out votes and the lead over plain distance."""
    groups = trial.triples if by == BY_TRIPLE else trial.components
    methods = list(trial.methods(protocol))
    names = [method.name for method in methods]
    held = {measured: _Held({name: [] for name in names}, []) for measured in MEASURES}
    chosen: dict[str, list[float]] = {name: [] for name in names}
    group_of = {tuple(sorted(q)): int(g) for q, g in zip(trial.questions.tolist(), groups.tolist(), strict=True)}
    for nth, split in enumerate(trial.splits(groups, trial.seed), start=1):
        inner = questions_held_out(split, groups, 3, [trial.seed, nth])[: protocol.validations]
        tests = {"majority": trial.clean(split.test), "votes": trial.triplets(split.test).comparisons}
        for measured, rows in tests.items():
            of_rows = [group_of[tuple(sorted({*row}))] for row in rows.tolist()]
            held[measured].groups.append(np.array(of_rows, dtype=np.int64))
        for method in methods:
            space, setting = learn_chosen(method, split, inner, trial.score)
            if setting is not None:
                chosen[method.name].append(setting)
            for measured, rows in tests.items():
                held[measured].scores[method.name].append(in_order(space.points, rows))
        progress(f"{by}: fold {nth} of {N_FOLDS}")
    table: list[Row] = []
    for name in names:
        row: dict[str, object] = {"held out": by, "method": name}
        for measured in MEASURES:
            row |= _cells(measured, held[measured].interval(name, trial.seed))
            if name != UNLEARNED:
                lead = held[measured].interval(name, trial.seed, UNLEARNED)
                row |= _cells(f"{measured}: lead", lead)
        row["C chosen most often"] = max(chosen[name], key=chosen[name].count) if chosen[name] else None
        table.append(row)
    return table


def _cells(name: str, interval: Sequence[float]) -> dict[str, float]:
    return dict(zip((name, f"{name}, from", f"{name}, to"), interval, strict=True))


def ceilings(trial: Trial) -> list[Row]:
    """Return the largest share of votes that a distance can agree with, and that of other listeners' majority."""
    voted = trial.triplets(np.arange(len(trial.questions)))
    n_votes = voted.votes + voted.against
    groups = np.repeat(trial.components[voted.questions], n_votes)
    if len(np.unique(groups)) < 2:
        groups = np.repeat(trial.triples[voted.questions], n_votes)
    rows: list[Row] = []
    for name, agreed in (("most", agreed_by_all), ("ceiling: the other listeners", agreed_by_others)):
        shares = np.repeat(agreed(voted.votes, voted.against), n_votes)
        interval = bootstrap_pairs(shares, np.zeros(len(shares)), groups, random_state=trial.seed)
        rows.append({"held out": "nothing", "method": name} | _cells("votes", interval))
    return rows


def judge(
    judged: PublicJudgments, X: Float64Array, protocol: Protocol, settings: Settings, progress: Progress
) -> tuple[list[Row], list[Claim]]:
    """Run the protocol on questions about clips; row i of X describes clip i."""
    trial = Trial(judged, X, settings.seed)
    kept = clean_comparisons(
        judged.triplets().comparisons, contradictions="majority", reduce=False, random_state=settings.seed
    )[1]
    sizes = np.bincount(trial.components)
    settings.facts.update({
        "votes": int(judged.votes.sum()), "comparisons, all": str(kept), "components": int(np.count_nonzero(sizes)),
        "questions in the largest component": int(sizes.max()), "folds": N_FOLDS,
    })  # fmt: skip
    rows, claims = ceilings(trial), []
    for by, groups in ((BY_TRIPLE, trial.triples), (BY_COMPONENT, trial.components)):
        if len(np.unique(groups)) < 2 * N_FOLDS:
            settings.facts[f"not measured {by}"] = f"there are only {len(np.unique(groups))} groups of questions"
            continue
        table = measure(trial, by, protocol, progress)
        rows += table
        for row in table[1:]:
            claims.append(
                at_least(f"{by}: {row['method']}, lower end of the lead, majority", row["majority: lead, from"], 0.0)
            )
    return rows, claims


def with_vectors(judged: PublicJudgments, library: Library) -> tuple[PublicJudgments, Float64Array]:
    """Return the questions about three songs of a library, and the songs' vectors under Sound.

    Several clips of one song become one clip, because they have one vector.
    """
    snapshot = snapshot_under(library, "Sound")
    files = [FiledSong(path=path) for path in judged.paths]
    matches = match_songs(library, set(files))
    row_of = snapshot.rows_of([-1 if (song := matches[file]) is None else song for file in files])
    rows = row_of[judged.questions]
    ascending = np.sort(rows, axis=1)
    is_known = (ascending[:, 0] >= 0) & (np.diff(ascending, axis=1) > 0).all(axis=1)
    songs, places = np.unique(rows[is_known], return_inverse=True)
    rows_found, places_found = np.unique(row_of, return_index=True)
    first = places_found[np.searchsorted(rows_found, songs)]  # one clip of each song
    known = PublicJudgments(
        judged.data_set, judged.form, tuple(judged.clips[i] for i in first), tuple(judged.paths[i] for i in first),
        places.reshape(-1, 3), judged.votes[is_known],
    )  # fmt: skip
    return known, snapshot.vectors_at(songs).astype(np.float64)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    if settings.labels is None:
        raise Skipped("Name a file of votes by --labels, and its clips by --music or --library.")
    judged = load_judgments(settings.labels)
    settings.inputs["judgments"] = digest(settings.labels)
    with open_music(settings, settings.cache or CACHE, progress) as library:
        known, X = with_vectors(judged, library)
    most = np.sort(known.votes, axis=1)[:, ::-1]
    settings.facts.update({
        "data": judged.data_set, "questions": len(known.questions),
        "unmatched": len(judged.questions) - len(known.questions),
        "without a majority": int(np.count_nonzero(most[:, 0] == most[:, 1])),
    })  # fmt: skip
    if len(known.questions) < 2 * N_FOLDS:
        raise Skipped(f"The library has the clips of {len(known.questions)} questions; {2 * N_FOLDS} are needed.")
    return judge(known, X, FULL if settings.full else SHORT, settings, progress)


if __name__ == "__main__":
    main(
        "public_judgments", "public judgments of similarity: learned metrics, plain distance and other listeners", run,
        rivals=("scikit-learn",), takes_library=True, takes_music=True,
        short="1 of 3 splits for choosing C, and fits that stop earlier",
    )  # fmt: skip
