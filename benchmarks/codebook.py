"""The codebook against scikit-learn, numpy and faiss: 1,024 codewords of 39 features, one thread.

Fit: one pass over the frames. Ours gets raw frames and z-scores them on the clock; the rivals get z-scored frames.
Histograms: eight nearest codewords of the frames of songs of 30 s. The rivals again get z-scored frames for free, one
song at a time and many at once, and their best form counts. Seconds are CPU seconds after a warm-up round, so they
exclude compilation.

Data: a seeded synthetic process (a sound from a Gaussian mixture held for 50 frames, plus an AR(1) process of
coefficient 0.9). If the optional data folder exists, also the delta-MFCC frames of its recordings by librosa; fit and
evaluation use different recordings.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, load_found, main, race, version
from benchmarks.support.rival import Answer, RivalError, RivalProcess, timed
from musicsim._arrays import Float32Array, FloatingArray, Int64Array
from musicsim.codebook import Codebook
from musicsim.datasets import find
from musicsim.extras import install_command

N_CODEWORDS, TAU = 1024, 8
SONG = 2584
"""Float32Array of 30 s."""


def synthetic_frames(n_frames: int, seed: int) -> Float32Array:
    """Draw raw frames (n_frames, 39) that resemble their neighbors in time."""
    rng = np.random.default_rng(seed)
    sounds = 2.0 * rng.standard_normal((300, 39))
    held = np.repeat(sounds[rng.integers(300, size=-(-n_frames // 50))], 50, axis=0)[:n_frames]
    noise = rng.standard_normal((n_frames, 39), dtype=np.float32)
    drift = lfilter([np.sqrt(1 - 0.9**2)], [1.0, -0.9], noise, axis=0)
    return ((held + 1.5 * drift) * np.geomspace(80.0, 0.5, 39) - 20.0).astype(np.float32)


def recorded_frames(folder: Path) -> tuple[Float32Array, Float32Array]:
    """Return the frames of real recordings for the fit, and those of every fourth recording, held out."""
    import librosa

    # the other folders, and files named like that, have the same music in another format
    paths = sorted(p for part in ("excerpts", "originals") for p in (folder / part).iterdir())
    kept = [p for p in paths if p.suffix in {".ogg", ".mp3", ".flac"} and not p.stem.endswith("_22k_mono")]
    sides: tuple[list[Float32Array], list[Float32Array]] = ([], [])
    for place, path in enumerate(kept):
        y, sr = librosa.load(path, sr=22050)
        mfcc = librosa.feature.mfcc(y=y, sr=sr, n_mfcc=13, n_fft=512, hop_length=256, n_mels=40)
        rows = [mfcc, librosa.feature.delta(mfcc), librosa.feature.delta(mfcc, order=2)]
        sides[place % 4 == 3].append(np.concatenate(rows).T.astype(np.float32))
    return np.concatenate(sides[0]), np.concatenate(sides[1])


def mean_squared_distance(points: Float32Array, codewords: FloatingArray) -> float:
    """Return the mean squared distance in float64, from the definition, by blocks; the same for all codebooks."""
    squares = (codewords.astype(np.float64) ** 2).sum(axis=1)
    total = 0.0
    for start in range(0, len(points), 1024):
        block = points[start : start + 1024].astype(np.float64)
        distances = squares - 2.0 * block @ codewords.T.astype(np.float64)
        total += (distances.min(axis=1) + (block**2).sum(axis=1)).sum()
    return total / len(points)


def z_scored(codebook: Codebook, frames: Float32Array) -> Float32Array:
    return ((frames - codebook.mean_) / codebook.scale_).astype(np.float32)


def _one_pass(points: Float32Array, batch: int, init: str, seed: int) -> MiniBatchKMeans:
    rival = MiniBatchKMeans(N_CODEWORDS, batch_size=batch, init=init, n_init=1, random_state=seed)
    for start in range(0, len(points), batch):
        rival.partial_fit(points[start : start + batch])
    return rival


def fit_rows(
    data: str, frames: Float32Array, held_out: Float32Array, settings: Settings
) -> tuple[list[Row], list[Claim]]:
    """Race the fits; return a row for each and the claims against the best of scikit-learn."""
    seed = settings.seed
    ours = Codebook(N_CODEWORDS, TAU, random_state=seed).fit(frames)
    points = z_scored(ours, frames)[np.random.default_rng(seed).permutation(len(frames))]
    fits: dict[str, Callable[[], Codebook | MiniBatchKMeans]] = {
        "musicsim": lambda: ours.fit(frames),
        "partial_fit, 1,024 a batch": lambda: _one_pass(points, 1024, "k-means++", seed),
        "partial_fit, 1,024 a batch, random start": lambda: _one_pass(points, 1024, "random", seed),
        "partial_fit, 8,192 a batch, random start": lambda: _one_pass(points, 8192, "random", seed),
        "fit with all defaults (several passes)": lambda: MiniBatchKMeans(N_CODEWORDS, random_state=seed).fit(points),
    }
    results = {name: fit() for name, fit in fits.items()}
    seconds = race(fits, repeats=3)
    test = z_scored(ours, held_out)
    rows: list[Row] = []
    for name, fitted in results.items():
        codewords = fitted.codewords_ if isinstance(fitted, Codebook) else fitted.cluster_centers_
        rows.append(
            {
                "data": data,
                "task": "fit",
                "method": name if name == "musicsim" else f"MiniBatchKMeans {name}",
                "cpu_seconds": seconds[name],
                "us_per_frame": 1e6 * seconds[name] / len(frames),
                "error": mean_squared_distance(points, codewords),
                "error_held_out": mean_squared_distance(test, codewords),
            }
        )
    mine, *others = rows
    single_pass = others[:-1]
    fastest = min(row["cpu_seconds"] for row in single_pass)
    claims = [
        at_least(
            f"{data}: one pass, times faster than the fastest MiniBatchKMeans.partial_fit",
            fastest / mine["cpu_seconds"],
            2.0,
        )
    ]
    for error, where in (("error", "frames of the fit"), ("error_held_out", "held-out frames")):
        best = min(row[error] for row in single_pass)
        claims.append(at_least(f"{data}: best error of partial_fit over ours, {where}", best / mine[error], 1.0))
    return rows, claims


def _numpy_forms(codewords: Float32Array, songs: list[Float32Array]) -> dict[str, Callable[[], npt.NDArray]]:
    """Return the obvious numpy forms of top-8 histograms: a matrix product and a partial sort."""
    products, squares = np.ascontiguousarray(-2.0 * codewords.T), (codewords**2).sum(axis=1)

    def by_index(points: Float32Array, block: int) -> Int64Array:
        counts = np.zeros(N_CODEWORDS, dtype=np.int64)
        for start in range(0, len(points), block):
            distances = points[start : start + block] @ products
            distances += squares
            nearest = np.argpartition(distances, TAU - 1, axis=1)[:, :TAU]
            counts += np.bincount(nearest.ravel(), minlength=N_CODEWORDS)
        return counts

    def by_value(points: Float32Array, block: int) -> Int64Array:
        counts = np.zeros(N_CODEWORDS, dtype=np.int64)
        for start in range(0, len(points), block):
            distances = points[start : start + block] @ products
            distances += squares
            last = np.partition(distances, TAU - 1, axis=1)[:, TAU - 1 : TAU]
            counts += np.count_nonzero(distances <= last, axis=0)
        return counts

    return {
        "numpy product + argpartition, a song at once": lambda: _each(by_index, songs, SONG),
        "numpy product + argpartition, 256 frames at once": lambda: _each(by_index, songs, 256),
        "numpy product + partition, a song at once": lambda: _each(by_value, songs, SONG),
        "numpy product + partition, 256 frames at once": lambda: _each(by_value, songs, 256),
    }


def _each(count: Callable[[Float32Array, int], npt.NDArray], songs: list[Float32Array], block: int) -> npt.NDArray:
    return np.array([count(song, block) for song in songs])


class FaissForms:
    """Top-8 histograms by faiss's flat index."""

    def __init__(self, codewords: Float32Array, songs: list[Float32Array]) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._index = faiss.IndexFlatL2(codewords.shape[1])
        self._index.add(codewords)
        self._songs = songs
        self._joined = np.concatenate(songs)

    def one_by_one(self) -> Int64Array:
        """Search one song at a time."""
        return np.array([_counts(self._index.search(song, TAU)[1]) for song in self._songs])

    def together(self) -> Int64Array:
        """Search all songs at once."""
        nearest = np.split(self._index.search(self._joined, TAU)[1], len(self._songs))
        return np.array([_counts(near) for near in nearest])


def _counts(nearest: Int64Array) -> Int64Array:
    return np.bincount(nearest.ravel(), minlength=N_CODEWORDS)


def histogram_rows(data: str, frames: Float32Array, codebook: Codebook, n_songs: int) -> tuple[list[Row], list[Claim]]:
    """Race the histograms; return a row for each and the claim against the best rival."""
    raw = [frames[start : start + SONG] for start in range(0, n_songs * SONG, SONG)]
    songs = [z_scored(codebook, song) for song in raw]
    codewords = codebook.codewords_.astype(np.float32)
    forms: dict[str, Callable[[], npt.NDArray | Answer]] = {
        "musicsim, Codebook.transform of all songs": lambda: codebook.transform(raw),
        "musicsim, Codebook.transform of each song": lambda: np.concatenate(
            [codebook.transform([song]) for song in raw]
        ),
        **_numpy_forms(codewords, songs),
    }
    reference = codebook.transform(raw) * (TAU * SONG)
    with ExitStack() as held:
        rivals = f"numpy (faiss not installed: {install_command('bench')})"
        if version("faiss-cpu"):
            try:
                faiss = held.enter_context(RivalProcess(FaissForms, codewords, songs))
                faiss.call("together")
            except RivalError as error:
                rivals = f"numpy (faiss failed: {error})"
            else:
                forms["faiss IndexFlatL2, a song at once"] = partial(faiss.call, "one_by_one")
                forms["faiss IndexFlatL2, all songs at once"] = partial(faiss.call, "together")
                rivals = "numpy and faiss"
        moved = {
            name: np.abs(timed(form).value * (TAU * SONG if name.startswith("musicsim") else 1) - reference).sum() / 2
            for name, form in forms.items()
        }
        seconds = race(forms, repeats=12)
    rows: list[Row] = [
        {
            "data": data,
            "task": "top-8 histograms",
            "method": name,
            "cpu_seconds": seconds[name],
            "ms_per_song": 1e3 * seconds[name] / n_songs,
            "us_per_frame": 1e6 * seconds[name] / (n_songs * SONG),
            "share_of_choices_that_differ": moved[name] / (TAU * SONG * n_songs),
        }
        for name in forms
    ]
    slowest = max(seconds[name] for name in forms if name.startswith("musicsim"))
    claims = []
    for who in ("numpy", "faiss"):
        theirs = [seconds[name] for name in forms if name.startswith(who)]
        if theirs:
            claim = f"{data}: top-8 histograms of 30 s songs, times faster than the best form of {who}"
            claims.append(at_least(claim, min(theirs) / slowest, 1.4))
    best = min(seconds[name] for name in forms if not name.startswith("musicsim"))
    claim = f"{data}: top-8 histograms of 30 s songs, times faster than the best of {rivals}"
    return rows, [at_least(claim, best / slowest, 1.4), *claims]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    n_frames, n_songs = (1_000_000, 40) if settings.full else (200_000, 12)
    settings.facts.update(n_codewords=N_CODEWORDS, tau=TAU, n_features=39, threads=1)
    frames = synthetic_frames(n_frames + 40 * SONG, settings.seed)
    sets = {"synthetic": (frames[:n_frames], frames[n_frames:], n_songs)}
    frames_of = {"recordings": lambda: recorded_frames(find("audio"))}
    for name, (train, held_out) in load_found(frames_of, settings, progress, "recordings").items():
        sets[name] = (train, held_out, min(n_songs, len(held_out) // SONG))
    if not version("faiss-cpu"):
        settings.facts["faiss"] = f"rival not installed: {install_command('bench')}"
        progress(settings.facts["faiss"])
    rows: list[Row] = []
    claims: list[Claim] = []
    with threadpool_limits(1):
        for data, (train, held_out, songs) in sets.items():
            settings.facts[f"{data}_frames"] = {"fit": len(train), "held out": len(held_out), "songs": songs}
            progress(f"{data}: fit of {len(train)} frames")
            more, held = fit_rows(data, train, held_out, settings)
            rows, claims = rows + more, claims + held
            progress(f"{data}: histograms of {songs} songs")
            codebook = Codebook(N_CODEWORDS, TAU, random_state=settings.seed).fit(train)
            more, held = histogram_rows(data, held_out, codebook, songs)
            rows, claims = rows + more, claims + held
    return rows, claims


if __name__ == "__main__":
    main(
        "codebook",
        "the codebook's fit and histograms",
        run,
        data=("audio",),
        rivals=("scikit-learn", "faiss-cpu", "librosa"),
        short="200,000 of 1,000,000 generated frames, and 12 of 40 generated songs. This is final, because all "
        "claims hold, also on the recordings, which are the same in both forms",
    )
