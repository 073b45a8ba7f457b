"""Neighbors in the demo collection: do the nearest songs share a style and an artist, in five representations?

For the 10 nearest neighbors of each song: the share of its own style and of its own artist. Candidates are all songs,
or all except those of its own artist (the artist filter). Further scores: how often the first neighbor is by the same
artist, and the hubness of the space. Representations:

- logarithms of Gaussians (Sound, the app's default)
- codeword histograms mapped for the probability product kernel (PPK)
- the same histograms raw with Euclidean distance
- mean and deviation of 20 MFCC by librosa's defaults, and of our 39 columns (z-scored, Euclidean)
- chance
"""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import KeptRows, Lines, Table, drop_zeros, find_row, format_share, list_values
from benchmarks.support.report import Claim, Settings, at_least, format_lead, main
from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.audio import SAMPLE_RATE, SongFrames, load
from musicsim.codebook import Codebook
from musicsim.evaluation import hubness, nearest_neighbors, share_of_same
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import fit_sound, parts_of
from musicsim.kernels import ppk_map

K = 10
N_CODEWORDS, TAU = 1024, 4
TRAINING_FRAMES = 200_000
# Same composer at rank 1 on real recordings, measured with a prototype.
ELSEWHERE = {"PPK": 0.52, "statistics": 0.50, "raw histograms": 0.44}

Progress = Callable[[str], None]
Results = dict[str, list[dict[str, Float64Array]]]  # description -> codebook -> measure -> (n_songs,)


def _codes(names: list[str]) -> Int64Array:
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _mean_and_deviation(frames: Float32Array) -> Float64Array:
    return np.r_[frames.mean(axis=0), frames.std(axis=0)].astype(np.float64)


def _plain_mfcc(path: Path) -> Float64Array:
    """Return mean and deviation of a file's 20 MFCC, librosa's defaults."""
    import librosa

    return _mean_and_deviation(librosa.feature.mfcc(y=load(path), sr=SAMPLE_RATE).T)


def _z_scored(X: Float64Array) -> Float64Array:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _histograms(frames: list[Float32Array], seed: int) -> Float32Array:
    rng = np.random.default_rng(seed)
    quota = TRAINING_FRAMES // len(frames)
    sample = np.concatenate([f[rng.permutation(len(f))[:quota]] for f in frames])
    return Codebook(N_CODEWORDS, tau=TAU, random_state=seed).fit(sample).transform(frames)


def _sound(songs: list[SongFrames]) -> Float32Array:
    encoder, within = fit_sound([parts_of(song) for song in songs])
    model = SimilarityModel(SOUND).use_encoder(encoder)
    features = model.features(songs)
    return model.fit_space(features, within).vectors(features)


def _descriptions(
    songs: list[SongFrames], paths: list[Path], seeds: range, progress: Progress
) -> Iterator[tuple[str, int, FloatingArray]]:
    """Yield name, seed and vectors of each representation; the seed is that of the codebook."""
    frames = [np.concatenate(list(song.blocks())) for song in songs]
    for seed in seeds:
        progress(f"codebook with seed {seed}")
        histograms = _histograms(frames, seed)
        yield "PPK", seed, ppk_map(histograms)
        yield "raw histograms", seed, histograms
        yield "chance", seed, np.random.default_rng(seed).standard_normal((len(frames), 50))
    progress("Gaussians of all songs")
    yield "Sound", 0, _sound(songs)
    yield "statistics, 39 columns", 0, _z_scored(np.array([_mean_and_deviation(f) for f in frames]))
    progress("decoding all songs for librosa's MFCC")
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        yield "statistics", 0, _z_scored(np.array(list(pool.map(_plain_mfcc, paths, chunksize=16))))


def _measures(
    X: FloatingArray, styles: Int64Array, artists: Int64Array
) -> tuple[dict[str, Float64Array], dict[str, float]]:
    """Return shares of each song by measure, and the hubness of the space."""
    near = nearest_neighbors(X, K)
    filtered = nearest_neighbors(X, K, groups=artists)
    shares = {
        "style@10": share_of_same(near, styles)[1],
        "artist@10": share_of_same(near, artists)[1],
        "artist@1": share_of_same(near[:, :1], artists)[1],
        "style@1": share_of_same(near[:, :1], styles)[1],
        "style@10, artist filter": share_of_same(filtered, styles)[1],
        "style@1, artist filter": share_of_same(filtered[:, :1], styles)[1],
    }
    return shares, {"hubness": hubness(near), "hubness, artist filter": hubness(filtered)}


def _table(shares: Results, hubs: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """Return one row per representation: the mean over codebooks, and the deviation between them."""
    rows = []
    for name, runs in shares.items():
        row: dict[str, Any] = {"description": name, "codebooks": len(runs)}
        for measure in (*runs[0], *hubs[name][0]):
            values = [
                np.mean(run[measure]) if measure in run else hub[measure]
                for run, hub in zip(runs, hubs[name], strict=True)
            ]
            row[measure] = float(np.mean(values))
            row[f"{measure} deviation"] = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        row["artist@1, real music elsewhere"] = ELSEWHERE.get(name)
        rows.append(row)
    return rows


def _lead(shares: Results, measure: str, better: str, worse: str, artists: Int64Array) -> tuple[float, float, float]:
    """Return the mean lead over the songs with its 95 % interval by resampling artists, whose songs are correlated."""
    lead = np.mean([run[measure] for run in shares[better]], 0) - np.mean([run[measure] for run in shares[worse]], 0)
    counts = np.bincount(artists)
    sums = np.bincount(artists, weights=lead)
    drawn = np.random.default_rng(0).integers(0, len(counts), (2000, len(counts)))
    low, high = np.percentile(sums[drawn].sum(1) / counts[drawn].sum(1), [2.5, 97.5])
    return float(lead.mean()), float(low), float(high)


_LEADS = (("Sound", "PPK"), ("PPK", "statistics"), ("statistics", "raw histograms"), ("PPK", "chance"))


def _claims(shares: Results, artists: Int64Array) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Return the leads with their intervals, and the claims on their order."""
    rows, claims = [], []
    for measure in ("style@10", "artist@10", "style@10, artist filter", "artist@1"):
        for better, worse in _LEADS:
            mean, low, high = _lead(shares, measure, better, worse, artists)
            rows.append({"lead": f"{better} over {worse}", "measure": measure, "mean": mean, "low": low, "high": high})
            claims.append(at_least(f"{measure}: {better} ahead of {worse} by", mean, 0.0))
    return rows, claims


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Measure every representation; three codebooks, ten with ``--full``."""
    with demo_library(settings.seed, progress) as library:
        songs = library.songs()
        progress(f"reading the frames of {len(songs)} songs")
        frames = [library.frame_files.frames(song.content_hash) for song in songs]
    styles, artists = _codes([s.genre or "" for s in songs]), _codes([s.artist or "" for s in songs])
    seeds = range(settings.seed, settings.seed + (10 if settings.full else 3))
    settings.facts.update(
        songs=len(songs), styles=int(styles.max()) + 1, artists=int(artists.max()) + 1, neighbors=K,
        codewords=N_CODEWORDS, tau=TAU, codebook_seeds=list(seeds),
    )  # fmt: skip
    shares: Results = {}
    hubs: dict[str, list[dict[str, float]]] = {}
    for name, seed, X in _descriptions(frames, [song.path for song in songs], seeds, progress):
        progress(f"neighbors by {name}, seed {seed}")
        share, hub = _measures(X, styles, artists)
        shares.setdefault(name, []).append(share)
        hubs.setdefault(name, []).append(hub)
    leads, claims = _claims(shares, artists)
    return [*_table(shares, hubs), *leads], claims


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_leads(rows: KeptRows) -> Lines:
    measures = {"style@10, artist filter": "same style among the ten nearest", "artist@1": "same artist at rank 1"}
    yield "lead, with its 95% interval", *measures.values()
    for lead in list_values(rows, "lead"):
        of = [find_row(rows, lead=lead, measure=measure) for measure in measures]
        said = lead.replace("PPK", "codewords").replace("statistics", "MFCC statistics")
        yield said, *(drop_zeros(format_lead(row["mean"], row["low"], row["high"])) for row in of)


_DEMO = {
    "Sound": "*Sound*",
    "PPK": "Codewords (PPK)",
    "statistics": "MFCC statistics",
    "raw histograms": "raw histograms",
}


def _tabulate(rows: KeptRows) -> Lines:
    yield "", "same style among the ten nearest", "same artist at rank 1", "skewness of the ten-occurrence"
    for name, said in (_DEMO | {"chance": "chance"}).items():
        row = find_row(rows, description=name)
        figures = (row["style@10, artist filter"], row["artist@1"], row["hubness"])
        yield said, *(format_share(figure) for figure in figures)


TABLES: dict[str, Table] = {"demo: leads": _tabulate_leads, "demo": _tabulate}


if __name__ == "__main__":
    main(
        "demo", __doc__.splitlines()[0], run, rivals=("scikit-learn", "librosa"),
        short="3 of 10 codebooks. This is final, because codebooks differ far less than the intervals over "
        "artists are wide",
    )  # fmt: skip
