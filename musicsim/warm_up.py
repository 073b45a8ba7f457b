"""Compile all loops once, so that nobody waits for it later.

numba compiles a loop when it is first called with arguments of certain types. Each function here calls the loops of a
package through its classes, with few numbers.
"""

import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from multiprocessing import get_context
from tempfile import TemporaryDirectory

import numpy as np

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_choice
from musicsim.audio import import_librosa
from musicsim.codebook import Codebook
from musicsim.explorer.mixing.beats import find_beats
from musicsim.hashing import RankHash
from musicsim.kernels import gmm_kernel
from musicsim.metric import LGMML, MLR, MultipleKernelMLR
from musicsim.mixtures import MixtureSpace, SemanticMultinomials, fit_mixtures
from musicsim.order import PartialOrderEmbedding, clean_comparisons
from musicsim.playlist import Hypergraph, PlaylistModel, als_factors, bpr_factors
from musicsim.progress import Progress, no_progress
from musicsim.relevance import Relevance
from musicsim.search import CompactIndex, HammingIndex, PartitionIndex, SpillForest, SpillTree


def warm_up(*packages: str, n_jobs: int = 1, progress: Progress = no_progress) -> None:
    """Compile the loops of the methods, once per installation.

    It takes one or two minutes of CPU time, and a few seconds if all is compiled. Without it, the first fit of an
    estimator takes up to 15 s longer. ``make app``, ``make test`` and ``musicsim warm-up`` call it.

    Parameters
    ----------
    packages : str
        Names of packages, such as ``"metric"``; all by default.
    n_jobs : int, default=1
        Number of processes.
    progress : callable, optional
        Receives the name of each package that is done, and the numbers of packages.

    Notes
    -----
    numba keeps what it compiles next to the modules, or in the folder ``NUMBA_CACHE_DIR``. If librosa is installed, its
    functions are compiled, too.

    Examples
    --------
    >>> import musicsim as ms
    >>> ms.warm_up("mixtures")
    >>> ms.warm_up("drums")
    Traceback (most recent call last):
        ...
    ValueError: package='drums' should be one of search, metric, librosa, codebook, order, hashing, playlist, mixtures.
    """
    for package in packages:
        check_choice("package", package, PACKAGES)
    # numba would keep all that it compiled in memory, so each package has a process of its own
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        parts = [pool.submit(_compile, name) for name in packages or PACKAGES]
        for n_done, part in enumerate(as_completed(parts), start=1):
            progress(part.result(), n_done, len(parts))


def _compile(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rows and steps are too few to learn
        PACKAGES[name]()
    return name


def _draw() -> tuple[Float64Array, Int64Array]:
    """Return vectors and labels."""
    return np.random.default_rng(0).normal(size=(24, 4)), np.arange(24) % 2


def _compile_metric() -> None:
    X, y = _draw()
    for loss in ("auc", "map", "mrr", "precision", "ndcg"):
        MLR(loss, max_cuts=2).fit(X, y)
    MLR(max_cuts=3).fit(X + 9 * y[:, None], y)  # most pairs are in order
    MultipleKernelMLR(max_cuts=2).fit([X @ X.T, np.exp(X @ X.T)], y)
    for loss in ("warp", "ndcg"):
        LGMML(2, loss, n_queries=2, n_epochs=1).fit(X, y, [6] * 4)
    plays = [(listener, song, 10) for song in range(len(X)) for listener in (song % 3, 3 + song % 5)]
    Relevance.from_plays(plays, k=2)


def _compile_order() -> None:
    X, _ = _draw()
    pairs = np.random.default_rng(0).permuted(np.tile(np.arange(len(X)), (60, 1)), axis=1)[:, :4]
    comparisons, _ = clean_comparisons(pairs, random_state=0)
    PartialOrderEmbedding(max_iter=2).fit([X @ X.T], comparisons)


def _compile_hashing() -> None:
    X, y = _draw()
    codes = RankHash(8, ranknet_steps=2, lambdarank_steps=2).fit(X, y).transform(X)
    for method in ("scan", "balls"):
        index = HammingIndex(method).fit(codes)
        index.add(codes)
        index.query(codes, k=3)
        index.radius(codes, 1)


def _compile_search() -> None:
    X = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    for index in (SpillForest(2, leaf_size=16), PartitionIndex(), SpillTree("kd", leaf_size=16), CompactIndex(8)):
        index.fit(X[:500])
        index.add(X[500:])
        index.query(X[:2], k=3)
        with TemporaryDirectory() as folder:
            index.save(folder)
            type(index).load(folder, X)
    SpillTree(leaf_size=16).fit(X).retrieve(X[:2])


def _compile_codebook() -> None:
    frames = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    codebook = Codebook(8).fit(frames)
    codebook.transform([frames])
    frames.flags.writeable = False  # as those of a library
    Codebook(8).fit(frames).transform([frames])


def _compile_mixtures() -> None:
    songs = np.random.default_rng(0).normal(size=(6, 40, 3))
    mixtures = fit_mixtures(songs, 2)
    MixtureSpace(4, n_samples=10).fit(mixtures).transform(mixtures)
    gmm_kernel(mixtures)
    SemanticMultinomials(2, min_songs=2).fit(songs, [["a"], ["b"]] * 3).transform(songs)


def _compile_playlist() -> None:
    graph = Hypergraph(np.ones((4, 2)), ["a", "b"])
    PlaylistModel(graph, max_iter=1).fit([[0, 1, 2], [2, 3]])
    plays = np.random.default_rng(0).integers(2, size=(8, 10))
    bpr_factors(plays, 2, learning_rate=0.1, penalty=0.1, n_passes=1)
    als_factors(plays, 2, penalty=0.1, n_passes=1)


def _compile_librosa() -> None:
    if find_spec("librosa") is None:
        return
    rate = 22_050
    clicks = np.zeros(8 * rate, np.float32)
    clicks[:: rate // 2] = 1.0
    find_beats(clicks[None], rate)
    import_librosa().effects.time_stretch(clicks, rate=1.01)


PACKAGES: dict[str, Callable[[], object]] = {  # those that take longest first
    "search": _compile_search,
    "metric": _compile_metric,
    "librosa": _compile_librosa,
    "codebook": _compile_codebook,
    "order": _compile_order,
    "hashing": _compile_hashing,
    "playlist": _compile_playlist,
    "mixtures": _compile_mixtures,
}
