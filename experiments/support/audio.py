"""Songs by sound and by tags, split by artist and ranked before and after learning: for experiments.audio."""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.demo import TRAINING_FRAMES
from experiments.support.pieces import mutual_proximity
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.codebook import Codebook, suggest_n_codewords
from musicsim.evaluation import hubness
from musicsim.evaluation.ranking import distance_scores
from musicsim.explorer.learning.two_way import ResampledScores, Space, TwoWay
from musicsim.explorer.learning.verdict import Lead, leads_above
from musicsim.kernels import human_tag_vectors, inverse_document_frequency, ppk_map, tfidf_map
from musicsim.library import Library
from musicsim.metric import GMML, MLR, LGMMLByExample
from musicsim.mixtures import MixtureSpace, SemanticMultinomials, SongMixtures, fit_mixtures, kl_divergences
from musicsim.relevance import Relevance

__all__ = [
    "GMM",
    "GMML_LOCAL",
    "GMML_ONE",
    "GMM_SPACE",
    "LEARNED",
    "NATIVE",
    "PPK",
    "SMD",
    "TAGS",
    "TFIDF",
    "VQ",
    "Protocol",
    "Result",
    "Songs",
    "Split",
    "adjusted",
    "codeword_vectors",
    "codeword_vectors_by_tau",
    "divergence_rows",
    "effective_dimension",
    "lead_above_shuffled",
    "learn_distances",
    "learned_distances",
    "mean_distances",
    "measure_codewords",
    "measure_others",
    "mixtures",
    "native_distances",
    "principal",
    "restrict_to_parts",
    "tag_vectors",
]


VQ, TFIDF, PPK = "VQ histograms", "TF-IDF", "PPK"
GMM, GMM_SPACE, SMD, TAGS = "GMM-KL", "GMM space", "SMD", "human tags"
NATIVE = "native"
GMML_ONE, GMML_LOCAL = "GMML", "L-GMML"
REGULARIZERS = {"MLR": "trace", "MLR, L2,1": "l21"}
LEARNED = (*REGULARIZERS, GMML_ONE, GMML_LOCAL)
ONE = tuple((t, reg) for t in (0.0, 0.25, 0.5) for reg in (0.01, 0.1, 1.0))
"""Place on the geodesic, and how near to plain distance."""
LOCAL = tuple((m, rho, t, reg) for m in (4, 16) for rho in (16.0, 256.0) for t in (0.25, 0.5) for reg in (0.1, 1.0))
"""Metrics, how local, place on the geodesic, and how near to the metric of all pairs."""
MEASURES = ("auc", "map", "mrr")
K_NEAREST = 10
"""Of the hubs."""
N_SAMPLES = 2048


@dataclass(frozen=True, slots=True)
class Songs:
    """Songs of an experiment, whose frames are read from the library on demand.

    Attributes
    ----------
    folder : Path
        The library's folder.
    ids : tuple of int
    artists : int ndarray of shape (n_songs,)
    tags : tuple of lists of str, one per song
    """

    folder: Path
    ids: tuple[int, ...]
    artists: Int64Array
    tags: tuple[list[str], ...]

    def frames(self, rows: Iterable[int]) -> Iterator[Float32Array]:
        """Yield the frames of some songs, one song at a time."""
        with Library.open(self.folder, create=False) as library:
            by_id = {song.id: song for song in library.songs(self.ids)}
            for row in rows:
                yield library.frames(by_id[self.ids[row]])


@dataclass(frozen=True, slots=True)
class Split:
    """Rows of training, validation and test songs; no artist is in two parts.

    `relevance` maps the number of similar artists to three relevances, one per part. Each gives the training songs that
    are relevant to the songs of the part. `plays` maps it to the relevance of all songs to each other, for the control:
    by the plays, and by each shuffled copy of them. It is empty if there is no control.
    """

    number: int
    train: Int64Array
    validation: Int64Array
    test: Int64Array
    relevance: dict[int, tuple[Relevance, Relevance, Relevance]]
    plays: dict[int, tuple[Relevance, ...]] = field(default_factory=dict)


def restrict_to_parts(
    whole: Relevance, train: Int64Array, validation: Int64Array, test: Int64Array
) -> tuple[Relevance, Relevance, Relevance]:
    """Return the relevance of the training songs to the songs of each part of a split."""
    return whole.restrict(train, train), whole.restrict(validation, train), whole.restrict(test, train)


@dataclass(frozen=True, slots=True)
class Protocol:
    """The grid of MLR, its stopping rule and the codebooks."""

    splits: int
    Cs: tuple[float, ...]
    tol: float
    max_cuts: int
    codewords: tuple[int, ...]
    taus: tuple[int, ...]
    most_songs: int | None


@dataclass(frozen=True, slots=True)
class Result:
    """One ranking method on one split; `scores` has the scores of each test query by measure.

    `codewords` is an upper bound: few training frames give fewer codewords, and 0 means that none are used. `seconds`
    is the CPU time of PCA and of the fits of all settings.
    """

    k: int
    representation: str
    learning: str
    proximity: bool
    split: int
    scores: dict[str, Float64Array]
    hubness: float
    chosen: str = ""
    gap: float = np.nan
    seconds: float = 0.0
    codewords: int = 0
    tau: int = 0


def codeword_vectors(
    songs: Songs, train: Int64Array, most_codewords: int, tau: int, seed: int
) -> dict[str, Float64Array]:
    """Return histograms of all songs over codewords of the training songs: raw, TF-IDF and PPK."""
    return next(codeword_vectors_by_tau(songs, train, most_codewords, (tau,), seed))


def codeword_vectors_by_tau(
    songs: Songs, train: Int64Array, most_codewords: int, taus: Iterable[int], seed: int
) -> Iterator[dict[str, Float64Array]]:
    """Yield :func:`codeword_vectors` of one codebook for each tau."""
    rng = np.random.default_rng(seed)
    quota = max(1, TRAINING_FRAMES // len(train))
    sample = np.concatenate([f[rng.permutation(len(f))[:quota]] for f in songs.frames(train)])
    n_codewords = suggest_n_codewords(len(sample), maximum=most_codewords)
    codebook = Codebook(n_codewords, random_state=seed).fit(sample)
    for tau in taus:
        histograms = codebook.set_params(tau=tau).transform(songs.frames(range(len(songs.ids))))
        found = {
            VQ: histograms,
            TFIDF: tfidf_map(histograms, inverse_document_frequency(histograms[train])),
            PPK: ppk_map(histograms),
        }
        yield {name: X.astype(np.float64) for name, X in found.items()}


def tag_vectors(songs: Songs, train: Int64Array, seed: int) -> dict[str, Float64Array]:
    """Return vectors of given tags and of tags predicted from sound (PPK of multinomials), fitted on training songs.

    The result is empty if no training song has tags. It lacks the multinomials unless two tags have enough songs,
    because a single one has the probability 1 for every song.
    """
    lists = [songs.tags[row] for row in train]
    counts = Counter(tag for tags in lists for tag in set(tags))
    if not counts:
        return {}
    found = {TAGS: human_tag_vectors(songs.tags, sorted(counts)).astype(np.float64)}
    model = SemanticMultinomials(random_state=seed)
    if sum(n >= model.min_songs for n in counts.values()) > 1:
        model.fit(songs.frames(train), lists)
        multinomials = model.transform(songs.frames(range(len(songs.ids))))
        found[SMD] = ppk_map(multinomials).astype(np.float64)
    return found


def mixtures(songs: Songs, rows: range, seed: int) -> SongMixtures:
    """Return a mixture per song of `rows`. A mixture depends only on the song's own frames, not on the split."""
    return fit_mixtures(songs.frames(rows), random_state=seed)


def divergence_rows(queries: SongMixtures, database: SongMixtures, seed: int) -> Float32Array:
    """Return KL(query || song) of equation 5.9."""
    return kl_divergences(queries, database, N_SAMPLES, seed).astype(np.float32)


def native_distances(representation: str, X: Float64Array, train: Int64Array) -> Float64Array:
    """Return distances (n_songs, n_train): Euclidean for raw histograms, else Euclidean of unit rows (cosine order).

    A zero row (a song without tags) has cosine 0 to every song. Plain Euclidean distance would place it nearer.
    """
    if representation == VQ:
        return _euclidean(X, X[train])
    return np.sqrt(np.maximum(2.0 - 2.0 * (X @ X[train].T), 0.0))


def learned_distances(
    X: Float64Array, split: Split, k: int, regularizer: str, protocol: Protocol
) -> tuple[Float64Array, str, float]:
    """Return MLR distances (n_songs, n_train) after PCA, the C with the best validation AUC, and the gap.

    PCA (95 % of the variance) and MLR see training songs only. All components are divided by one number that gives the
    training songs variance 1 overall. A value of C then means the same for every representation.
    """
    from sklearn.exceptions import ConvergenceWarning

    Z = principal(X, split.train)
    inside, validation, _ = split.relevance[k]
    best: tuple[float, Float64Array, MLR] | None = None
    mlr = MLR("auc", regularizer=regularizer, tol=protocol.tol, max_cuts=protocol.max_cuts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows the gaps
        path = mlr.fit_path(Z[split.train], inside, protocol.Cs)
    for fitted in path:
        songs = fitted.transform(Z)
        D = _euclidean(songs, songs[split.train])
        auc = float(np.nanmean(distance_scores(D[split.validation], validation)["auc"]))
        if best is None or auc > best[0]:  # ties go to the smallest C
            best = auc, D, fitted
    assert best is not None
    _, D, chosen = best
    return D, f"C {chosen.C:g}", float(chosen.history_[-1]["gap"])


def mean_distances(X: Float64Array, split: Split, k: int, learning: str) -> tuple[Float64Array, str]:
    """Return distances (n_songs, n_train) by geometric mean metrics after PCA, and the setting of best validation AUC.

    Local metrics (SIGIR 2017, 4.4) compare a query by the metric of its own region. Learning sees training songs only,
    as in :func:`learned_distances`.
    """
    Z = principal(X, split.train)
    inside, validation, _ = split.relevance[k]
    best: tuple[float, Float64Array, str] | None = None
    for setting, measure in _means(Z[split.train], inside, learning, split.number):
        D = measure(Z)
        auc = float(np.nanmean(distance_scores(D[split.validation], validation)["auc"]))
        if best is None or auc > best[0]:
            best = auc, D, setting
    assert best is not None
    return best[1], best[2]


def _means(
    songs: Float64Array, relevance: Relevance, learning: str, seed: int
) -> Iterator[tuple[str, Callable[[Float64Array], Float64Array]]]:
    """Yield each setting with a function from songs to their distances to the training songs."""
    if learning == GMML_ONE:
        for t, reg in ONE:
            gmml = GMML(t=t, reg=reg).fit(songs, relevance)
            yield (f"t {t:g}, reg {reg:g}", lambda Z, gmml=gmml: _euclidean(gmml.transform(Z), gmml.transform(songs)))
        return
    for m, rho, t, reg in LOCAL:
        local = LGMMLByExample(m, rho=rho, t=t, reg=reg, random_state=seed).fit(songs, relevance)
        yield f"m {m}, rho {rho:g}, t {t:g}, reg {reg:g}", lambda Z, local=local: local.distances(Z, songs)


def principal(X: Float64Array, train: Int64Array) -> Float64Array:
    """Return principal components (95 %) of the training songs, divided by one number."""
    from sklearn.decomposition import PCA

    pca = PCA(0.95, svd_solver="full").fit(X[train])
    components: Float64Array = pca.transform(X) / np.sqrt(pca.explained_variance_.sum())
    return components


def effective_dimension(X: Float64Array) -> int:
    """Return the number of principal components with 95 % of the variance (thesis, figure 5.5)."""
    variances = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    return int(np.searchsorted(variances.cumsum(), 0.95 * variances.sum()) + 1)


def adjusted(D: Float64Array, split: Split, rows: Int64Array) -> Float64Array:
    """Return mutual proximity of the queries `rows` and the training songs, with all moments from training songs.

    Parameters
    ----------
    D : ndarray of shape (n_songs, n_train)
        Distances of all songs to the training songs. Divergences are not symmetric: the moments of a column are those
        of a training song as seen from the others.
    """
    others = D[split.train].copy()
    np.fill_diagonal(others, np.nan)
    queries = D[rows]
    return mutual_proximity(
        queries, queries.mean(axis=1), queries.std(axis=1), np.nanmean(others, axis=0), np.nanstd(others, axis=0)
    )


def measure_codewords(
    songs: Songs, split: Split, most_codewords: int, tau: int, protocol: Protocol, seed: int
) -> list[Result]:
    """Measure every ranking method that starts from codeword histograms."""
    found = codeword_vectors(songs, split.train, most_codewords, tau, seed)
    of_codebook = {"codewords": most_codewords, "tau": tau}
    return [r for name, X in found.items() for r in _measure_vectors(name, X, split, protocol, of_codebook)]


def measure_others(
    songs: Songs, split: Split, every: SongMixtures, divergences: Float32Array, protocol: Protocol, seed: int
) -> list[Result]:
    """Measure tags and mixtures; mixtures by their `divergences` (n_songs, n_train) and as vectors."""
    space = MixtureSpace(random_state=seed).fit(every[split.train])
    found = tag_vectors(songs, split.train, seed) | {GMM_SPACE: space.transform(every).astype(np.float64)}
    results = [r for name, X in found.items() for r in _measure_vectors(name, X, split, protocol, {})]
    for k in split.relevance:
        results += _both_ways(divergences.astype(np.float64), split, k, GMM, NATIVE)
    return results


def _measure_vectors(
    name: str, X: Float64Array, split: Split, protocol: Protocol, about: dict[str, int]
) -> Iterator[Result]:
    native = native_distances(name, X, split.train)
    for k in split.relevance:
        yield from _both_ways(native, split, k, name, NATIVE, **about)
        for learning in LEARNED:
            started = time.process_time()
            D, chosen, gap = learn_distances(X, split, k, learning, protocol)
            spent = time.process_time() - started
            yield from _both_ways(D, split, k, name, learning, chosen=chosen, gap=gap, seconds=spent, **about)


def learn_distances(
    X: Float64Array, split: Split, k: int, learning: str, protocol: Protocol
) -> tuple[Float64Array, str, float]:
    """Return distances (n_songs, n_train) by any of :data:`LEARNED`, the chosen setting, and the gap, if known."""
    if learning in REGULARIZERS:
        return learned_distances(X, split, k, REGULARIZERS[learning], protocol)
    return *mean_distances(X, split, k, learning), np.nan


def lead_above_shuffled(
    name: str, X: Float64Array, artists: Int64Array, split: Split, k: int, learning: str, protocol: Protocol
) -> Lead | None:
    """Return the lead in AUC over native distances of vectors X, next to the same lead with shuffled plays.

    Learning and the choice of its setting are repeated on each shuffled copy of the plays, and judged by that copy. The
    artists of the test songs and those of the training songs are resampled. None if the test songs are by one artist.
    """
    names = [str(artist) for artist in artists]
    two_way = TwoWay(split.test, split.train, names, reduce_hubs=False)
    native = native_distances(name, X, split.train)

    def score(whole: Relevance) -> tuple[ResampledScores, ResampledScores]:
        supervised = restrict_to_parts(whole, split.train, split.validation, split.test)
        learned = learn_distances(X, replace(split, relevance={k: supervised}), k, learning, protocol)[0]
        before, after = (two_way.score(Space(X, D.__getitem__), whole, names) for D in (native, learned))
        return before, after

    real, *shuffled = map(score, split.plays[k])
    return leads_above(*real, shuffled).get("auc")


def _both_ways(
    D: Float64Array, split: Split, k: int, representation: str, learning: str, **about: Any
) -> Iterator[Result]:
    """Rank training songs for the test songs by D and by its mutual proximity."""
    relevance = split.relevance[k][2]
    for proximity in (False, True):
        distances = adjusted(D, split, split.test) if proximity else D[split.test]
        scores = distance_scores(distances, relevance)
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :K_NEAREST]
        yield Result(
            k,
            representation,
            learning,
            proximity,
            split.number,
            {measure: scores[measure] for measure in MEASURES},
            hubness(nearest, len(split.train)),
            **about,
        )


def _euclidean(A: Float64Array, B: Float64Array) -> Float64Array:
    from scipy.spatial.distance import cdist

    distances: Float64Array = cdist(A, B)
    return distances
