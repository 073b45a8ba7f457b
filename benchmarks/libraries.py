"""Libraries to measure on: the demo collection, and generated songs with a taste hidden in their histograms.

Each artist of the generated songs has a taste and a production. Both change how often codewords occur, production more
than taste, and listeners choose artists by taste alone. A good model learns to use taste and to ignore production.
"""

from collections.abc import Callable
from pathlib import Path

import filelock
import numpy as np

from musicsim import LIBRARY_FILE
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio import DESCRIPTOR_VERSION, FEATURE_VERSION
from musicsim.codebook import Codebook
from musicsim.explorer.models.artifacts import save_map
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.add_music import build_demo
from musicsim.explorer.refresh.fitting import NATIVE, new_record
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.db.database import open_engine
from musicsim.library.stores.models import NATIVE_KIND
from musicsim.progress import no_progress

__all__ = ["demo_library", "generated_library", "read_only"]


DATA_FOLDER = Path(__file__).parents[1] / "data" / "experiments"

_TASTES, _PRODUCTIONS = 6, 10
_LOUDER = 2.0  # effect of production relative to that of taste
_FRAMES_A_SONG = 17_000
_ARTISTS_A_LISTENER = 25
_BLOCK = 1_000


def demo_library(seed: int, progress: Callable[[str], None]) -> Library:
    """Open the demo collection of this seed; the first run composes it while other processes wait."""
    library = Library.open(DATA_FOLDER / f"demo-{seed}")
    with filelock.FileLock(DATA_FOLDER / f"demo-{seed}.lock"):
        if not library.playlists():
            progress("composing the demo collection, once")
            build_demo(library, seed=seed, progress=no_progress)
    return library


def read_only(folder: Path) -> Library:
    """Open a library for reading, even if another process has it open."""
    return Library(folder, open_engine(folder / LIBRARY_FILE, read_only=True))


def generated_library(
    folder: Path,
    n_songs: int,
    *,
    n_artists: int | None = None,
    n_listeners: int = 2_000,
    n_codewords: int = 1_024,
    random_state: int = 0,
) -> Library:
    """Make a library with songs, a built-in model with a map, and plays; no sound.

    Parameters
    ----------
    folder : Path
        Must not contain a library.
    n_artists : int, optional
        By default a tenth of the songs.
    """
    rng = np.random.default_rng(random_state)
    n_artists = n_artists or max(1, n_songs // 10)
    artist = np.sort(rng.integers(n_artists, size=n_songs))
    taste = rng.standard_normal((n_artists, _TASTES))
    library = Library.open(folder)
    ids = _enter_songs(library, folder, artist)
    _enter_model(library, ids, artist, taste, n_codewords, rng)
    _enter_plays(library, ids, artist, taste, n_listeners, rng)
    with library.note_refresh():
        pass
    return library


def _enter_songs(library: Library, folder: Path, artist: Int64Array) -> list[int]:
    ids = list(range(1, len(artist) + 1))
    paths = [folder / "music" / f"artist {a}" / f"song {i}.flac" for i, a in zip(ids, artist.tolist(), strict=True)]
    songs = [
        {
            "id": i, "content_hash": f"{i:064x}", "title": f"song {i}", "artist": f"artist {a}", "duration_s": 200.0,
            "genre": f"genre {a % 12}", "feature_version": FEATURE_VERSION, "added_at": 0.0, "is_compared": True,
            "descriptor_version": DESCRIPTOR_VERSION,
        }
        for i, a in zip(ids, artist.tolist(), strict=True)
    ]  # fmt: skip
    files = [
        {"path": path, "song_id": i, "folder": path.parent, "size": 1, "mtime_ns": 1}
        for i, path in zip(ids, paths, strict=True)
    ]
    with library.write() as connection:
        connection.execute(schema.songs.insert(), songs)
        connection.execute(schema.files.insert(), files)
    return ids


def _histograms(artist: Int64Array, taste: Float64Array, n_codewords: int, rng: np.random.Generator) -> Float32Array:
    """Draw counts of codewords from a log-linear model of taste, production and chance."""
    production = rng.standard_normal((len(taste), _PRODUCTIONS))
    usual = rng.standard_normal(n_codewords)
    by_taste = 0.5 * rng.standard_normal((_TASTES, n_codewords)) / np.sqrt(_TASTES)
    by_production = 0.5 * _LOUDER * rng.standard_normal((_PRODUCTIONS, n_codewords)) / np.sqrt(_PRODUCTIONS)
    histograms = np.empty((len(artist), n_codewords), dtype=np.float32)
    for start in range(0, len(artist), _BLOCK):
        rows = artist[start : start + _BLOCK]
        own = taste[rows] + 0.3 * rng.standard_normal((len(rows), _TASTES))
        made = production[rows] + 0.3 * rng.standard_normal((len(rows), _PRODUCTIONS))
        rate = np.exp(usual + own @ by_taste + made @ by_production)
        counts = rng.poisson(_FRAMES_A_SONG * rate / rate.sum(axis=1, keepdims=True)) + 1e-3
        histograms[start : start + len(rows)] = counts / counts.sum(axis=1, keepdims=True)
    return histograms


def _enter_model(
    library: Library,
    ids: list[int],
    artist: Int64Array,
    taste: Float64Array,
    n_codewords: int,
    rng: np.random.Generator,
) -> None:
    book = Codebook(n_codewords, tau=4, random_state=0)
    book.fit(rng.standard_normal((4 * n_codewords, 39)).astype(np.float32))
    histograms = _histograms(artist, taste, n_codewords, rng)
    model = (
        SimilarityModel(n_codewords=n_codewords, random_state=0)
        .use_encoder(CodewordEncoder(book))
        .fit_space(histograms)
    )
    record = new_record(NATIVE_KIND, NATIVE, model, len(ids))
    model.save(library.models.path(record.id))
    library.models.register(record)
    for start in range(0, len(ids), _BLOCK):
        block = slice(start, start + _BLOCK)
        library.models.append(record.id, ids[block], histograms[block], model.vectors(histograms[block]))
    # the principal axes serve as the map: drawing one of 20,000 songs takes a minute that is not measured here
    vectors = library.vectors(record.id)
    save_map(library.models.path(record.id), vectors.song_ids, vectors.X[:, :2])
    library.models.finish(record.id, activate=True)


def _enter_plays(
    library: Library,
    ids: list[int],
    artist: Int64Array,
    taste: Float64Array,
    n_listeners: int,
    rng: np.random.Generator,
) -> None:
    """Add plays: each listener plays songs of the artists nearest to a taste of their own, with some randomness."""
    songs_of = np.searchsorted(artist, np.arange(len(taste) + 1))
    rows = []
    for listener in range(n_listeners):
        liking = taste @ rng.standard_normal(_TASTES) + rng.gumbel(size=len(taste))
        for a in np.argsort(-liking)[:_ARTISTS_A_LISTENER].tolist():
            songs = np.arange(songs_of[a], songs_of[a + 1])
            if len(songs):
                song = int(rng.choice(songs))
                rows.append(
                    {"listener": f"listener {listener}", "song_id": ids[song], "count": int(rng.integers(10, 60))}
                )
    library.add_plays(rows)
