"""Combining timbre, harmony, rhythm, tags, plays and words: each kernel alone, averages, and learned weights.

Two songs are similar if they have the same genre. Artists are split 40 : 30 : 30 into training, validation and test.
Songs of test artists query the training songs, so the artist of a query is never in the database.

- Kernels: timbre is PPK of codeword histograms, with a codebook of training songs. Harmony and rhythm come from the
  same pass over the sound (docs/research/kernels.md), harmony both as played and in any key. Tags and words of lyrics
  are cosines of TF-IDF (rarity among all songs), and plays are cosines of listeners. A kernel that lacks half of the
  songs is dropped.
- All distances, also of the learned combinations, are adjusted by mutual proximity. This puts them on one scale.
- Averages: with equal weights, and with the weights of best validation MAP, in steps of a tenth (of a fifth for more
  than three kernels).
- POE: multiple kernel partial order embedding (thesis 2.4) of comparisons sampled from the labels of the training
  songs. A song of the same genre is nearer than one of another. A song by the same artist is nearer than one that
  shares only the genre. MLR: multiple kernel metric learning to rank (thesis 4.3) by genre. Both have one weight per
  training song and kernel, or one full matrix per kernel with ``--full``, and the C of best validation MAP.

Leads are mean differences in MAP over the queries of all splits, with 95 % intervals by resampling artists. The demo's
music is synthetic: its genres are recipes of timbre, harmony and rhythm alike, and its listeners and tags follow them.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from benchmarks.libraries import demo_library
from benchmarks.support.columns import Column, KeptRow, Table, list_columns
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Settings, at_least, format_lead, main
from experiments.support.audio import VQ, Songs, Split, adjusted, codeword_vectors
from experiments.support.descriptors import split_rows
from experiments.support.uci import one_core_each
from musicsim._arrays import Float64Array, Int64Array
from musicsim.evaluation import bootstrap_pairs
from musicsim.evaluation.ranking import distance_scores
from musicsim.extensions.lyrics.store import LyricsStore
from musicsim.kernels import harmony_kernel, plays_cosine_kernel, ppk_kernel, rhythm_kernel, tfidf_cosine_kernel
from musicsim.library import Library, Song
from musicsim.metric import MultipleKernelMLR
from musicsim.order import PartialOrderEmbedding, clean_comparisons
from musicsim.relevance import Relevance

TIMBRE, HARMONY, ANY_KEY, RHYTHM = "timbre", "harmony", "harmony in any key", "rhythm"
TAGS, PLAYS, WORDS = "tags", "plays", "words"
SOUND = (TIMBRE, ANY_KEY, RHYTHM)
ALONE, AVERAGE, WEIGHTED, POE, MLR = "alone", "average", "weighted average", "POE", "MLR"
MEASURES = {"AUC": "auc", "MAP": "map", "P@10": "precision"}
TAU = 4
KNOWN = 0.5
"""Share of the songs that a kernel has to know something of."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Splits, sizes, the grid of both learners, and the stopping rule."""

    splits: int
    most_songs: int
    codewords: int
    n_comparisons: int
    structure: str
    Cs: tuple[float, ...]
    tol: float
    max_iter: int
    max_cuts: int


SHORT = Protocol(
    splits=3, most_songs=400, codewords=512, n_comparisons=2000, structure="diagonal", Cs=(1e2, 1e4), tol=2e-2,
    max_iter=300, max_cuts=40,
)  # fmt: skip
FULL = Protocol(
    splits=10, most_songs=2000, codewords=1024, n_comparisons=8000, structure="full", Cs=(1.0, 1e2, 1e4), tol=1e-2,
    max_iter=2000, max_cuts=200,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Collection:
    """Songs with one label each, and their data other than frames.

    Attributes
    ----------
    songs : Songs
    genres : int ndarray of shape (n_songs,)
    fixed : dict of ndarrays of shape (n_songs, n_songs)
        Kernels that do not depend on the split.
    """

    songs: Songs
    genres: Int64Array
    fixed: dict[str, Float64Array]


@dataclass(frozen=True, slots=True)
class Result:
    """One ranking method on one split; `scores` has the scores of each test query by measure."""

    way: str
    kernels: tuple[str, ...]
    split: int
    scores: dict[str, Float64Array]
    chosen: str = ""


def collection_of(library: Library, most_songs: int, seed: int) -> Collection:
    """Return songs with a genre, an artist, frames and aspects; a larger library is sampled by artist.

    Raises
    ------
    SystemExit
        If the library does not have such songs.
    """
    kept = library.frame_files.list_stored() & library.frame_files.list_stored_aspects()
    chosen = [song for song in library.songs() if song.genre and song.artist and song.content_hash in kept]
    if not chosen:
        raise SystemExit(
            f"{library.folder}: no song has a genre, an artist and its harmony and rhythm; add its folders again."
        )
    chosen = _some_artists(chosen, most_songs, seed)
    artists = np.unique([song.group for song in chosen], return_inverse=True)[1].astype(np.int64)
    genres = np.unique([song.genre or "" for song in chosen], return_inverse=True)[1].astype(np.int64)
    songs = Songs(library.folder, tuple(song.id for song in chosen), artists, ())
    return Collection(songs, genres, dict(_fixed_kernels(library, chosen)))


def _some_artists(songs: list[Song], most: int, seed: int) -> list[Song]:
    names, artists = np.unique([song.group for song in songs], return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    fits = np.cumsum(np.bincount(artists)[order]) <= most
    taken = np.isin(artists, order[fits])
    return [song for song, is_taken in zip(songs, taken, strict=True) if is_taken]


def _fixed_kernels(library: Library, songs: list[Song]) -> Iterator[tuple[str, Float64Array]]:
    aspects = library.frame_files.aspects([song.content_hash for song in songs])
    yield HARMONY, harmony_kernel(aspects.harmony)
    yield ANY_KEY, harmony_kernel(aspects.harmony, key_invariant=True)
    yield RHYTHM, rhythm_kernel(aspects.rhythm)
    row_of = {song.id: row for row, song in enumerate(songs)}
    given = [(song_id, tag, weight) for song_id, of_song in library.tags(row_of).items() for tag, weight in of_song]
    plays, lyrics = library.plays(), LyricsStore(library).table()
    said = {
        TAGS: tabulate_counts([i for i, _, _ in given], [tag for _, tag, _ in given], [w for _, _, w in given], row_of),
        PLAYS: tabulate_counts(plays.song_id, plays.listener, np.ones(len(plays.song_id)), row_of),
        WORDS: _of_rows(lyrics.counts, lyrics.song_ids, row_of),
    }
    for name, counts in said.items():
        if np.mean(counts.sum(axis=1) > 0) > KNOWN:
            yield name, plays_cosine_kernel(counts.T) if name == PLAYS else tfidf_cosine_kernel(counts)


def tabulate_counts(
    song_ids: npt.ArrayLike, columns: npt.ArrayLike, values: npt.ArrayLike, row_of: Mapping[int, int]
) -> sparse.csr_array:
    """Return one row per song and one column per value of `columns`; entries of other songs are dropped."""
    ids = np.asarray(song_ids, dtype=np.int64)
    names, column = np.unique(np.asarray(columns), return_inverse=True)
    table = sparse.csr_array((np.asarray(values, float), (np.arange(len(ids)), column)), (len(ids), len(names)))
    return _of_rows(table, ids, row_of)


def _of_rows(table: sparse.csr_array, song_ids: Int64Array, row_of: Mapping[int, int]) -> sparse.csr_array:
    """Return, for each song, the sum of the rows of `table` with its ID in `song_ids`."""
    ours = np.flatnonzero(np.isin(song_ids, list(row_of)))
    rows = [row_of[song_id] for song_id in song_ids[ours].tolist()]
    chosen = sparse.csr_array((np.ones(len(ours)), (rows, ours)), (len(row_of), table.shape[0]))
    return sparse.csr_array(chosen @ table)


def comparisons_from_labels(
    genres: Int64Array, artists: Int64Array, n_comparisons: int, random_state: int | None = None
) -> Int64Array:
    """Sample comparisons (i, j, i, l): j has i's genre and l does not, or j has i's artist and l only i's genre.

    Parameters
    ----------
    genres, artists : int arrays of shape (n_songs,)
    n_comparisons : int
        Number to sample. Fewer are returned, because songs without such a pair, and contradictions, are dropped.
    random_state : int or None

    Returns
    -------
    int64 ndarray of shape (m, 4)
    """
    rng = np.random.default_rng(random_state)
    found = []
    for draw in range(n_comparisons):
        i = int(rng.integers(len(genres)))
        same_genre, same_artist = genres == genres[i], artists == artists[i]
        near, far = (same_artist, same_genre & ~same_artist) if draw % 2 else (same_genre, ~same_genre)
        nearer, farther = np.flatnonzero(near), np.flatnonzero(far)
        nearer = nearer[nearer != i]
        if len(nearer) and len(farther):
            found.append((i, rng.choice(nearer), i, rng.choice(farther)))
    drawn = np.array(found, dtype=np.int64).reshape(-1, 4)
    return clean_comparisons(drawn, random_state=random_state)[0]


def measure(songs: Collection, number: int, protocol: Protocol, seed: int) -> list[Result]:
    """Measure every ranking method on one split."""
    return list(_measured(songs, number, protocol, seed))


def _measured(songs: Collection, number: int, protocol: Protocol, seed: int) -> Iterator[Result]:
    train, validation, test = split_rows(songs.songs.artists, seed + number)
    split = Split(number, train, validation, test, {})
    vectors = codeword_vectors(songs.songs, train, protocol.codewords, TAU, seed)
    kernels = {TIMBRE: ppk_kernel(vectors[VQ])} | songs.fixed
    relevance = Relevance.from_labels(songs.genres)
    asked, asked_before = relevance.restrict(test, train), relevance.restrict(validation, train)

    def scored(way: str, names: Sequence[str], D: Float64Array, chosen: str = "") -> Result:
        return Result(way, tuple(names), number, distance_scores(D, asked), chosen)

    far = {name: np.sqrt(np.maximum(2 - 2 * K[:, train], 0)) for name, K in kernels.items()}
    near, before = ({name: adjusted(D, split, rows) for name, D in far.items()} for rows in (test, validation))
    for name, D in near.items():
        yield scored(ALONE, [name], D)
    comparisons = comparisons_from_labels(songs.genres[train], songs.songs.artists[train], protocol.n_comparisons, seed)
    for names in _combinations(kernels):
        yield scored(AVERAGE, names, np.mean([near[name] for name in names], axis=0))
        weights = choose_weights([before[name] for name in names], asked_before)
        D = np.tensordot(weights, [near[name] for name in names], 1)
        yield scored(WEIGHTED, names, D, " : ".join(f"{weight:.1f}" for weight in weights))
        inside = [kernels[name][np.ix_(train, train)] for name in names]
        every = [kernels[name][:, train] for name in names]
        learners = {
            POE: [
                PartialOrderEmbedding(protocol.structure, C=C, tol=protocol.tol, max_iter=protocol.max_iter)
                for C in protocol.Cs
            ],
            MLR: [
                MultipleKernelMLR(C=C, structure=protocol.structure, tol=protocol.tol, max_cuts=protocol.max_cuts)
                for C in protocol.Cs
            ],
        }
        said = {POE: comparisons, MLR: relevance.restrict(train, train)}
        for way, models in learners.items():
            D, chosen = _best(models, inside, every, said[way], train, validation, asked_before)
            yield scored(way, names, adjusted(D, split, test), chosen)


def choose_weights(distances: Sequence[Float64Array], asked: Relevance) -> Float64Array:
    """Return weights that sum to 1, of best MAP; ties go to the first, with the highest weight on the first kernel."""
    steps = 10 if len(distances) <= 3 else 5
    shares = [s for s in product(range(steps, -1, -1), repeat=len(distances)) if sum(s) == steps]
    quality = [
        np.nanmean(distance_scores(np.tensordot(np.array(s) / steps, distances, 1), asked)["map"]) for s in shares
    ]
    return np.array(shares[int(np.argmax(quality))]) / steps


def _best(
    models: Sequence[Any],
    inside: list[Float64Array],
    every: list[Float64Array],
    said: Any,
    train: Int64Array,
    validation: Int64Array,
    asked: Relevance,
) -> tuple[Float64Array, str]:
    """Return distances of all songs to the training songs by the model of best validation MAP, and its C."""
    from scipy.spatial.distance import cdist

    best: tuple[float, Float64Array, str] | None = None
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a short fit leaves gaps open
            placed = model.fit(inside, said).transform(every)
        D = cdist(placed, placed[train])
        quality = float(np.nanmean(distance_scores(D[validation], asked)["map"]))
        if best is None or quality > best[0]:  # ties go to the smallest C
            best = quality, D, f"C {model.C:g}"
    assert best is not None
    return best[1], best[2]


def _combinations(kernels: Mapping[str, Float64Array]) -> list[tuple[str, ...]]:
    """Return the kernels of the sound, and those of the sound with everything else.

    Only harmony in any key is used, otherwise harmony would count twice.
    """
    said = tuple(name for name in (TAGS, PLAYS, WORDS) if name in kernels)
    return [SOUND, *([(*SOUND, *said)] if said else [])]


def _lead(
    ours: Sequence[Result], theirs: Sequence[Result], artists: Sequence[Int64Array], seed: int
) -> tuple[float, float, float]:
    a, b = (np.concatenate([r.scores["map"] for r in results]) for results in (ours, theirs))
    groups = np.concatenate([artists[r.split] for r in ours])
    return bootstrap_pairs(a, b, groups=groups, random_state=seed)


def table(
    results: Sequence[Result], artists: Sequence[Int64Array], seed: int
) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Return one row per ranking method, and the claims."""
    by: dict[tuple[str, tuple[str, ...]], list[Result]] = {}
    for result in results:
        by.setdefault((result.way, result.kernels), []).append(result)
    timbre = by[ALONE, (TIMBRE,)]
    rows = []
    for (way, names), of_splits in by.items():
        row: dict[str, Any] = {"combination": way, "kernels": ", ".join(names)}
        for title, measured in MEASURES.items():
            means = [float(np.nanmean(r.scores[measured])) for r in of_splits]
            row |= {title: float(np.mean(means)), f"{title} sd": float(np.std(means, ddof=1))}
        if of_splits is not timbre:
            mean, low, high = _lead(of_splits, timbre, artists, seed)
            row["lead MAP over timbre"] = format_lead(mean, low, high)
        chosen = [r.chosen for r in of_splits if r.chosen]
        row["chosen most often"] = max(chosen, key=chosen.count) if chosen else ""
        rows.append(row)
    low_ends = [(way, SOUND, ALONE, (TIMBRE,)) for way in (AVERAGE, WEIGHTED)]
    low_ends += [(way, names, AVERAGE, names) for way, names in by if way in (WEIGHTED, POE, MLR)]
    claims = [
        at_least(
            f"MAP, {_title(way, names)} above {_title(other, others)}: low end of the 95 % interval",
            _lead(by[way, names], by[other, others], artists, seed)[1],
            0.0,
        )
        for way, names, other, others in low_ends
    ]
    return rows, claims


def _title(way: str, kernels: Sequence[str]) -> str:
    return f"{way} of {', '.join(kernels)}" if way != ALONE else f"{kernels[0]} alone"


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Measure every ranking method on 3 splits; 10, more songs and full weights with ``--full``."""
    protocol = FULL if settings.full else SHORT
    opened = demo_library(settings.seed, progress) if settings.library is None else None
    with opened or Library.open(settings.library or "", create=False) as library:
        songs = collection_of(library, protocol.most_songs, settings.seed)
    progress(f"{len(songs.genres)} songs, kernels {', '.join((TIMBRE, *songs.fixed))}")
    numbers = range(protocol.splits)
    artists = [songs.songs.artists[split_rows(songs.songs.artists, settings.seed + n)[2]] for n in numbers]
    measure_split = kept_parts("audio_kernels", settings).cache(measure)
    results = []
    with one_core_each() as pool:
        splits = [pool.submit(measure_split, songs, number, protocol, settings.seed) for number in numbers]
        for number, split in enumerate(splits, start=1):
            results += split.result()
            progress(f"split {number} of {protocol.splits}")
    settings.facts.update(
        asdict(protocol),
        songs=len(songs.genres),
        genres=int(songs.genres.max()) + 1,
        artists=int(songs.songs.artists.max()) + 1,
        library="demo" if settings.library is None else settings.library.name,
        splits_by="artist, 40 : 30 : 30; nobody in two parts",
    )
    return table(results, artists, settings.seed)


# --- tables of the documents --------------------------------------------------------------------------------


def _describe_weights(row: KeptRow) -> str:
    chosen = row["chosen most often"]
    return f"{row['combination']} ({chosen})" if ":" in chosen else str(row["combination"])


TABLES: dict[str, Table] = {
    "audio_kernels": list_columns(
        Column("combination", _describe_weights),
        Column("kernels", lambda row: row["kernels"].replace(", ".join(SOUND), "sound")),
        *(Column(measure, measure, "{:.2f}") for measure in MEASURES),
        Column("MAP minus that of timbre (95% interval)", "lead MAP over timbre"),
    )
}


if __name__ == "__main__":
    main(
        "audio_kernels", __doc__.splitlines()[0], run, rivals=("scikit-learn",), takes_library=True, has_parts=True,
        short="3 of 10 splits, 512 of 1,024 codewords and 2,000 of 8,000 comparisons. Learned weights are "
        "diagonal, have fewer values of C and stop earlier. The full form is worth running for these "
        "weights, because only it learns full matrices",
    )  # fmt: skip
