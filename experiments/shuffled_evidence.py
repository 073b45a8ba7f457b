"""Shuffled evidence: what learning from plays and answers gains, next to the same learning if these are shuffled.

A gain that shuffled evidence gives too has nothing to do with taste or sound. For example, popular artists are similar
to many others, and a metric that moves them to the middle ranks them higher for everybody.

- plays: as in experiments.audio. Listeners and artists are dealt out again; each listener keeps the number of artists,
  and each artist the number of listeners. One shuffled copy per split of the demo's artists. The measure is AUC, before
  learning that of the same vectors: Euclidean for VQ histograms, cosine for PPK.
- real plays: as in experiments.descriptors, the artists of Last.fm 2k by Spotify's descriptors, shuffled in the same
  way. The measure is AUC, before learning that of the z-scored columns. Test artists are ranked among themselves.
- answers: as in experiments.listeners. Half of the questions are flipped. The measure is the share of comparisons in
  order, before learning that of Euclid or of the raw labels. Five copies per fold of the songs, and one per fold of the
  artists, which has ten times as many test answers.

"Popularity" ranks by the number of listeners alone, for the plays and for the shuffled plays.

On shuffled evidence, a method chooses its setting, learns and is judged by the shuffled copy.

The 95 % intervals of plays are from resampling the artists of queries and of the database (musicsim.explorer.learning).
They are as wide as those of one split on average, because all splits share the artists. Those of gains above shuffled
plays are wider still, to be right for four measures together. Those of answers are t intervals over the folds, widened
because folds share training answers (Nadeau and Bengio, Machine Learning 52, 2003).
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.libraries import demo_library
from benchmarks.support.columns import KeptRows, Lines, Table, drop_zeros, format_share
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, format_lead, load_found, main
from experiments import audio, descriptors, listeners
from experiments.listeners import LABELS_DIAGONAL, LABELS_FULL, LOGISTIC, Asked
from experiments.support.audio import GMML_LOCAL, GMML_ONE, PPK, VQ, Songs, Split, codeword_vectors, lead_above_shuffled
from experiments.support.descriptors import Collection, load_lastfm
from experiments.support.orders import IN_ORDER, Method, learn_chosen, order_score
from experiments.support.orders import Split as Fold
from experiments.support.surveys import Survey, comparisons_of, load_artists, load_survey
from experiments.support.uci import one_core_each
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation.ranking import distance_scores
from musicsim.explorer.learning.from_answers import Answered
from musicsim.explorer.learning.shuffles import trade_entries
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.two_way import ResampledScores, Space, TwoWay
from musicsim.explorer.learning.verdict import Lead, leads_above
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.relevance import Relevance

__all__ = [
    "Gain",
    "answers_about_artists",
    "answers_of",
    "gains_of",
    "join_folds",
    "join_splits",
    "score_popularity",
    "shuffle_listeners",
]

FROM_PLAYS = (audio.MLR, GMML_ONE, GMML_LOCAL)
FROM_REAL_PLAYS = ("MLR", descriptors.MEAN)
REAL_PLAYS = "hetrec2011-lastfm-2k"
OF_SONGS = ("LPOE, full", "LPOE, diagonal", LOGISTIC)
OF_ARTISTS = (LABELS_FULL, LABELS_DIAGONAL)
COPIES_OF_PLAYS, COPIES_OF_SONGS, COPIES_OF_ARTISTS = 1, 5, 1
N_SHORT = 3
"""Splits and folds of the short form."""

Gain = tuple[float, float, float]
"""On one fold: the share in order before learning, the lead of learning, and that on flipped answers."""


def _measure_plays(songs: Songs, split: Split, seed: int) -> dict[tuple[int, str, str], Lead]:
    """Return the lead of each method in AUC, by the number of similar artists, representation and method."""
    protocol = audio.FULL
    vectors = codeword_vectors(songs, split.train, protocol.codewords[0], protocol.taus[0], seed)
    leads = {}
    for k in split.plays:
        for name in (VQ, PPK):
            for learning in FROM_PLAYS:
                lead = lead_above_shuffled(name, vectors[name], songs.artists, split, k, learning, protocol)
                if lead is not None:
                    leads[k, name, learning] = lead
    return leads


def score_popularity(n_listeners: Float64Array, relevance: Relevance) -> float:
    """Return the mean AUC if every query gets the songs whose artists have the most listeners first."""
    order = np.broadcast_to(-n_listeners, (len(relevance), len(n_listeners)))
    return float(np.nanmean(distance_scores(order, relevance)["auc"]))


def _measure_real_plays(nth: int, seed: int) -> tuple[dict[str, Lead], list[float]]:
    """Return the lead of each method in AUC over z-scored descriptors of artists, and the AUC of popularity.

    The second AUC of popularity, and any further ones, are for the shuffled plays.
    """
    artists = load_lastfm()
    rng = np.random.default_rng([seed, nth])
    copies = [artists, *(shuffle_listeners(artists, rng) for _ in range(COPIES_OF_PLAYS))]
    parts = [descriptors.make_part("lastfm", copy, nth, seed) for copy in copies]
    leads = {}
    for method in FROM_REAL_PLAYS:
        real, *shuffled = (_score_before_and_after(part, method) for part in parts)
        leads[method] = leads_above(*real, shuffled)["auc"]
    n_listeners = np.sum(artists.tags, axis=1)
    return leads, [score_popularity(n_listeners[part.test], part.songs.relevance(part.test)) for part in parts]


def shuffle_listeners(artists: Collection, rng: np.random.Generator) -> Collection:
    """Deal out the listeners of artists; each artist keeps their number, and each listener the number of artists."""
    assert artists.tags is not None
    return replace(artists, tags=trade_entries(sparse.csr_array(artists.tags.T), rng).toarray().T)


def _score_before_and_after(part: descriptors.Part, method: str) -> tuple[ResampledScores, ResampledScores]:
    """Score test artists among themselves, in z-scored columns and in a space learned from the part's own listeners."""
    L = descriptors.learn_map(part, method, descriptors.FULL)[0]
    rows, names = np.arange(len(part.test)), [str(artist) for artist in part.songs.artists[part.test]]
    two_way = TwoWay(rows, rows, names, reduce_hubs=False)
    X, relevance = part.X[part.test], part.songs.relevance(part.test)
    before, after = (two_way.score(Space(Y), relevance, names) for Y in (X, X @ L.T))
    return before, after


def join_splits(leads: Sequence[Lead]) -> Row:
    """Return means over splits; the intervals are as wide as those of one split."""
    mean = {name: float(np.mean([getattr(lead, name) for lead in leads])) for name in Lead.__match_args__}
    return {
        "before": mean["before"],
        "lead": mean["mean"],
        "lead from": mean["low"],
        "lead to": mean["high"],
        "shuffled": mean["shuffled"],
        "above": mean["mean"] - mean["shuffled"],
        "above from": mean["above_low"],
        "above to": mean["above_high"],
        "splits": len(leads),
    }


def answers_of(survey: Survey) -> Answered:
    """Return the answers of a survey, of two comparisons each; answers to the same question have one key."""
    of_answers = comparisons_of(survey.songs, survey.odd).reshape(2, -1, 4).transpose(1, 0, 2)
    return Answered(list(of_answers), [(group,) for group in survey.groups.tolist()])


def answers_about_artists(comparisons: Int64Array) -> Answered:
    """Return one answer per comparison; its question is which of two artists is more like a third."""
    keys = [(i, *sorted((j, k))) for i, j, _, k in comparisons.tolist()]
    return Answered(list(comparisons[:, None]), keys)


def gains_of(
    names: Sequence[str],
    build: Callable[[Asked], Iterator[Method]],
    answered: Answered,
    split: Fold,
    inner: Sequence[Fold],
    n_copies: int,
    rng: np.random.Generator,
) -> dict[str, Gain]:
    """Measure methods on one fold, and again on copies of the answers, half of them flipped.

    `build` returns methods that learn from comparisons. The first one does not learn, and leads are over it.
    """

    def measure(answers: Answered) -> dict[str, float]:
        def asked(questions: Int64Array) -> Int64Array:
            return answers.some(questions).all()

        def score(points: Float64Array, questions: Int64Array) -> dict[str, float]:
            return order_score(points, asked(questions))

        plain, *others = build(asked)
        return {
            method.name: score(learn_chosen(method, split, inner, score)[0].points, split.test)[IN_ORDER]
            for method in (plain, *(method for method in others if method.name in names))
        }

    real, *flipped = map(measure, [answered, *(answered.flip(rng) for _ in range(n_copies))])
    before = next(iter(real))
    by_chance = {name: float(np.mean([copy[name] - copy[before] for copy in flipped])) for name in names}
    return {name: (real[before], real[name] - real[before], by_chance[name]) for name in names}


def join_folds(gains: Sequence[Gain], n_folds: int) -> Row:
    """Return means over folds; leads, and leads above those on flipped answers, have t intervals.

    `n_folds` is the number of parts of the answers: the test answers are 1 / (n_folds - 1) of the training answers.
    """
    before, lead, by_chance = np.array(gains).T
    row: dict[str, float] = {"before": float(before.mean()), "shuffled": float(by_chance.mean())}
    for name, values in (("lead", lead), ("above", lead - by_chance)):
        half = _half_width(values, n_folds)
        row |= {name: float(values.mean()), f"{name} from": values.mean() - half, f"{name} to": values.mean() + half}
    return row | {"splits": len(gains)}


def _half_width(values: Float64Array, n_folds: int) -> float:
    from scipy.special import stdtrit

    n = len(values)
    return float(stdtrit(n - 1, 0.975) * values.std(ddof=1) * np.sqrt(1 / n + 1 / (n_folds - 1)))


def _measure_songs(by: str, nth: int, seed: int) -> dict[str, Gain]:
    survey = load_survey()

    def build(asked: Asked) -> Iterator[Method]:
        return listeners.build_song_methods(survey.X, asked, listeners.FULL)

    split, inner = listeners.split_survey(survey, by, nth, seed)
    rng = np.random.default_rng([seed, nth])
    return gains_of(OF_SONGS, build, answers_of(survey), split, inner, COPIES_OF_SONGS, rng)


def _measure_artists(by: str, nth: int, seed: int) -> dict[str, Gain]:
    comparisons, labels = load_artists()

    def build(asked: Asked) -> Iterator[Method]:
        return listeners.build_artist_methods(asked, labels, by == "by artist", listeners.FULL, seed)

    split, inner = listeners.split_artists(comparisons, len(labels), by, nth, seed)
    rng = np.random.default_rng([seed, nth])
    return gains_of(OF_ARTISTS, build, answers_about_artists(comparisons), split, inner, COPIES_OF_ARTISTS, rng)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every method that learns, on real and on shuffled evidence."""
    n_splits, seed = listeners.N_FOLDS if settings.full else N_SHORT, settings.seed
    with demo_library(seed, progress) as library:
        snapshot = take_snapshot(library)
        rows_of = audio.chosen_songs(snapshot, None, seed)
        songs, splits = audio.splits_of(snapshot, rows_of, n_splits, seed, COPIES_OF_PLAYS)
        popularity = Supervision(snapshot, "plays", threshold=audio.THRESHOLD).popularity
    assert popularity is not None
    cache = kept_parts("shuffled_evidence", settings).cache
    of_answers = {
        ("songs", "bliss_triplets"): (cache(_measure_songs), ("by question", "by song")),
        ("artists", "aset400"): (cache(_measure_artists), ("by comparison", "by artist")),
    }
    loaders = {REAL_PLAYS: load_lastfm, "bliss_triplets": load_survey, "aset400": load_artists}
    there = load_found(loaders, settings, progress).keys()
    rows: list[Row] = []
    with one_core_each() as pool:
        of_plays = [pool.submit(cache(_measure_plays), songs, split, seed) for split in splits]
        of_real_plays, of_folds = [], {}
        if REAL_PLAYS in there:
            of_real_plays = [pool.submit(cache(_measure_real_plays), nth, seed) for nth in range(n_splits)]
        for (what, name), (measure, ways) in of_answers.items():
            for by in ways if name in there else ():
                of_folds[what, by] = [pool.submit(measure, by, nth, seed) for nth in range(n_splits)]
        leads = [task.result() for task in report_each(of_plays, "plays", progress)]
        rows += _rows_of_plays(leads, splits, popularity[rows_of])
        found = [task.result() for task in report_each(of_real_plays, "real plays", progress)]
        rows += _rows_of_real_plays(found)
        for (what, by), tasks in of_folds.items():
            gains = [task.result() for task in report_each(tasks, f"answers about {what}, {by}", progress)]
            about = {"evidence": "answers", "data": f"{what}, {by}"}
            rows += [
                about | {"method": method} | join_folds([one[method] for one in gains], listeners.N_FOLDS)
                for method in gains[0]
            ]
    return rows, [_claim(row) for row in rows]


def report_each(tasks: Sequence[Future[Any]], what: str, progress: Progress) -> Iterator[Future[Any]]:
    """Yield tasks, and report each before the next."""
    for done, task in enumerate(tasks, 1):
        yield task
        progress(f"{what}: {done} of {len(tasks)}")


def _rows_of_plays(
    found: Sequence[dict[tuple[int, str, str], Lead]], splits: Sequence[Split], n_listeners: Float64Array
) -> Iterator[Row]:
    for k, name, learning in found[0]:
        by_popularity = [
            [
                score_popularity(n_listeners[split.train], copy.restrict(split.test, split.train))
                for copy in split.plays[k]
            ]
            for split in splits
        ]
        about = {"evidence": "plays", "data": f"{name}, k {k}", "method": learning}
        yield about | join_splits([leads[k, name, learning] for leads in found]) | _popularity_row(by_popularity)


def _rows_of_real_plays(found: Sequence[tuple[dict[str, Lead], list[float]]]) -> Iterator[Row]:
    for method in found[0][0] if found else ():
        about = {"evidence": "plays", "data": "Last.fm 2k", "method": method}
        yield about | join_splits([leads[method] for leads, _ in found]) | _popularity_row([each for _, each in found])


def _popularity_row(scores: Sequence[Sequence[float]]) -> Row:
    """Return the mean score of popularity over splits; the first one of a split is for the plays."""
    real, *shuffled = np.mean(scores, axis=0).tolist()
    return {"popularity": real, "popularity, shuffled": float(np.mean(shuffled))}


def _claim(row: Row) -> Claim:
    name = f"{row['data']}, {row['method']}: lead above that from shuffled {row['evidence']}"
    return at_least(f"{name}, low end of the 95 % interval", row["above from"], 0.0)


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate(rows: KeptRows) -> Lines:
    yield (
        "", "method", "before", "by popularity: real, shuffled", "gain (95%)", "gain, shuffled",
        "gain above shuffled (95%)",
    )  # fmt: skip
    for row in rows:
        measure = "AUC" if row["evidence"] == "plays" else "in order"
        kept = (row[name] for name in ("popularity", "popularity, shuffled") if name in row)
        gain, above = ([row[f"{name}{end}"] for end in ("", " from", " to")] for name in ("lead", "above"))
        gains = (drop_zeros(text) for text in (format_lead(*gain), f"{row['shuffled']:+.3f}", format_lead(*above)))
        what, popularity = f"{row['evidence']}, {measure}: {row['data']}", ", ".join(map(format_share, kept))
        yield what, row["method"], format_share(row["before"], 3), popularity, *gains


TABLES: dict[str, Table] = {"shuffled_evidence": _tabulate}


if __name__ == "__main__":
    main(
        "shuffled_evidence", __doc__.splitlines()[0], run,
        data=("aset400", "bliss_triplets", "hetrec2011-lastfm-2k", "spotify_msd"), rivals=("scikit-learn",),
        has_parts=True,
        short="3 of 10 splits and folds. The full form is worth running, because intervals over three folds are wide",
    )  # fmt: skip
