"""A library of up to a million songs without sound: names, files, a complete model, clusters and a map.

Everything is drawn: artists of which few have many songs, clusters of artists that sound alike, genres that follow the
clusters. A song is a mixture of Gaussians in a space of 20 dimensions, which determines the loudness of 100 codewords.
Its vector is the square root of their histogram, as in the built-in model before the principal axes, so that recordings
from outside can be queries too.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim.audio import DESCRIPTOR_VERSION, FEATURE_VERSION
from musicsim.codebook import Codebook
from musicsim.demo.names import draw_artist_names, draw_titles
from musicsim.explorer.models.artifacts import save_clusters, save_map
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import NATIVE, new_record
from musicsim.explorer.refresh.placing import cluster_sizes
from musicsim.library import Library
from musicsim.library.db.schema import all_tables
from musicsim.library.stores.models import NATIVE_KIND

__all__ = ["VECTOR_DIMENSIONS", "drawn_vectors", "write_library"]

VECTOR_DIMENSIONS = 105
"""Of benchmarks that search in such vectors."""

_CODEWORDS = 100
_LATENT = 20
_BLOCK = 50_000
_SONGS_AN_ARTIST, _SONGS_A_CLUSTER, _SONGS_AN_ALBUM = 20, 500, 12
_MIN_CLUSTERS = 20
_TITLES = 20_000  # maximum number of different titles
_GENRES = (
    *("Ambient", "Blues", "Chanson", "Classical", "Country", "Disco", "Drum and Bass", "Electronic", "Folk", "Funk"),
    *("Hip-Hop", "House", "Jazz", "Metal", "Pop", "Punk", "Reggae", "Rock", "Soul", "Techno"),
)
# Spread of the latent space: between clusters, between artists of a cluster, between songs of an artist
_SPREAD = (1.0, 0.45, 0.35)
_OUTLINE = 400

_SONGS = """INSERT INTO songs (id, content_hash, title, artist, album, track, year, genre, duration_s, notes, outline,
    feature_version, added_at, file_tags, sound_hash, typical_s, is_compared, last_path, descriptor_version)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, 0, ?, ?, 30.0, 1, ?, ?)"""
# lyrics were looked for and not found
_LYRICS = "INSERT INTO lyrics (song_id, words, mtime_ns, read_at) VALUES (?, '{}', 1, 0)"
_FILES = "INSERT INTO files (path, song_id, folder, size, mtime_ns) VALUES (?, ?, ?, 1, 1)"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The artist of each song, and the cluster of each artist."""

    artist: Int64Array
    cluster: Int64Array
    centres: Float32Array
    own: Float32Array


def write_library(folder: Path, n_songs: int, *, n_dimensions: int = _CODEWORDS, random_state: int = 0) -> Library:
    """Write a library of drawn songs and open it; no job is left to run.

    Parameters
    ----------
    folder : Path
        Must not contain a library.
    n_songs : int >= 1
        A million songs take about 90 s and 2.5 GB on the disk.
    n_dimensions : int
        Dimensions of the vectors: codewords, without principal axes.
    random_state : int
        The same number gives the same songs and vectors.
    """
    rng = np.random.default_rng(random_state)
    plan = _plan(n_songs, rng)
    library = Library.open(folder)
    library.files.add_roots([folder / "music"])
    _enter_songs(library, folder / "music", plan, rng)
    _enter_model(library, plan, n_dimensions, rng)
    with library.note_refresh():
        pass
    return library


def drawn_vectors(n_songs: int, n_dimensions: int, random_state: int) -> Iterator[Float32Array]:
    """Yield vectors like those of such a library, float32 (n, n_dimensions), in parts, artists in random order."""
    rng = np.random.default_rng(random_state)
    plan = _plan(n_songs, rng)
    for histograms in _histograms(plan, rng.permutation(n_songs), n_dimensions, rng):
        yield np.sqrt(histograms)


def _plan(n_songs: int, rng: np.random.Generator) -> _Plan:
    """Draw artists by a law like Zipf's: the first of 50,000 has some thousands of songs, most have a few."""
    n_artists = max(1, n_songs // _SONGS_AN_ARTIST)
    n_clusters = max(n_songs // _SONGS_A_CLUSTER, min(n_artists, _MIN_CLUSTERS))
    weight = (np.arange(n_artists) + 10.0) ** -0.8
    artist = np.sort(rng.choice(n_artists, size=n_songs, p=weight / weight.sum()))
    centres = rng.standard_normal((n_clusters, _LATENT), dtype=np.float32) * _SPREAD[0]
    own = rng.standard_normal((n_artists, _LATENT), dtype=np.float32) * _SPREAD[1]
    return _Plan(artist, rng.integers(n_clusters, size=n_artists), centres, own)


def _enter_songs(library: Library, music: Path, plan: _Plan, rng: np.random.Generator) -> None:
    names = draw_artist_names(rng, len(plan.cluster))
    pool = draw_titles(rng, min(_TITLES, len(plan.artist)))
    genre_of = rng.integers(len(_GENRES), size=len(plan.centres))
    with library.write() as connection:
        for start in range(0, len(plan.artist), _BLOCK):
            artists = plan.artist[start : start + _BLOCK]
            songs, files = _rows(start, artists, plan, names, pool, genre_of, str(music), rng)
            connection.exec_driver_sql(_SONGS, songs)
            connection.exec_driver_sql(_FILES, files)
            if "lyrics" in {table.name for table in all_tables()}:  # the table belongs to an extension
                connection.exec_driver_sql(_LYRICS, [(song[0],) for song in songs])


def _rows(
    start: int,
    artists: Int64Array,
    plan: _Plan,
    names: list[str],
    pool: list[str],
    genre_of: Int64Array,
    music: str,
    rng: np.random.Generator,
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return rows of the tables `songs` and `files`; some songs lack an artist, a genre or a year."""
    n = len(artists)
    genre = np.where(rng.random(n) < 0.9, genre_of[plan.cluster[artists]], rng.integers(len(_GENRES), size=n))
    columns = (
        artists.tolist(),
        rng.integers(len(pool), size=n).tolist(),
        genre.tolist(),
        rng.integers(1960, 2025, size=n).tolist(),
        np.round(rng.gamma(8.0, 28.0, size=n) + 30.0, 3).tolist(),
        (rng.random((n, 3)) < (0.03, 0.05, 0.1)).tolist(),
    )
    outlines = rng.bytes(n * _OUTLINE)
    songs: list[tuple[object, ...]] = []
    files: list[tuple[object, ...]] = []
    for i, (a, t, g, year, seconds, lacks) in enumerate(zip(*columns, strict=True)):
        song_id = start + i + 1
        artist, title, album = names[a], pool[t], pool[(a + song_id // _SONGS_AN_ALBUM) % len(pool)]
        tags = {"title": title, "artist": artist, "album": album, "track": song_id % 12 + 1}
        tags |= {"year": year, "genre": _GENRES[g]}
        for field, is_lacking in zip(("artist", "genre", "year"), lacks, strict=True):
            tags[field] = None if is_lacking else tags[field]
        folder = f"{music}/{artist}/{album}"
        path = f"{folder}/{song_id:07d} {title}.flac"
        digest = f"{song_id:064x}"
        outline = outlines[i * _OUTLINE : (i + 1) * _OUTLINE]
        songs.append(
            (
                *(song_id, digest, title, tags["artist"], album, tags["track"], tags["year"], tags["genre"]),
                *(seconds, outline, FEATURE_VERSION, json.dumps(tags), digest, path, DESCRIPTOR_VERSION),
            )
        )
        files.append((path, song_id, folder))
    return songs, files


def _histograms(plan: _Plan, order: Int64Array, n_codewords: int, rng: np.random.Generator) -> Iterator[Float32Array]:
    """Yield histograms of the songs in the order of their rows, in parts."""
    loud = rng.standard_normal((_LATENT, n_codewords), dtype=np.float32) * np.float32(0.8 / np.sqrt(_LATENT) * 2)
    usual = rng.standard_normal(n_codewords, dtype=np.float32) * np.float32(0.5)
    for start in range(0, len(order), _BLOCK):
        artist = plan.artist[order[start : start + _BLOCK]]
        latent = plan.centres[plan.cluster[artist]] + plan.own[artist]
        latent += _SPREAD[2] * rng.standard_normal(latent.shape, dtype=np.float32)
        rate = latent @ loud + usual
        rate += 0.3 * rng.standard_normal(rate.shape, dtype=np.float32)
        np.exp(rate, out=rate)
        yield rate / rate.sum(axis=1, keepdims=True)


def _model(n_codewords: int, rng: np.random.Generator) -> SimilarityModel:
    """Make a built-in model with roots of histograms as vectors; its codewords are in the range of real frames."""
    level = np.concatenate([[-200.0, 90.0], np.zeros(37)])
    spread = np.concatenate([[90.0, 45.0], np.full(11, 18.0), np.full(13, 3.0), np.full(13, 1.0)])
    frames = level + spread * rng.standard_normal((60 * n_codewords, 39))
    book = Codebook(n_codewords, tau=4, random_state=0).fit(frames.astype(np.float32))
    model = SimilarityModel(n_codewords=n_codewords, random_state=0).use_encoder(CodewordEncoder(book))
    # with fewer than 50 songs no axes are fitted: the whole space is used
    return model.fit_space(np.full((2, n_codewords), 1.0 / n_codewords, dtype=np.float32))


def _enter_model(library: Library, plan: _Plan, n_codewords: int, rng: np.random.Generator) -> None:
    n = len(plan.artist)
    model = _model(n_codewords, rng)
    record = new_record(NATIVE_KIND, NATIVE, model, n)
    folder = library.models.path(record.id)
    model.save(folder)
    library.models.register(record)
    order = rng.permutation(n)  # a fit processes songs in the order of their hashes
    for start, histograms in zip(range(0, n, _BLOCK), _histograms(plan, order, n_codewords, rng), strict=True):
        ids = (order[start : start + _BLOCK] + 1).tolist()
        library.models.append(record.id, ids, histograms, model.vectors(histograms))
    artist = plan.artist[order]
    cluster = plan.cluster[artist]
    save_clusters(folder, order + 1, {k: of[cluster] for k, of in _coarser(plan.centres).items()})
    save_map(folder, order + 1, _places(plan, artist, cluster, rng))
    library.models.finish(record.id, activate=True)


def _coarser(centres: Float32Array) -> dict[str, Int64Array]:
    """Return the labels of the clusters among 16, 64 and 256 larger ones."""
    from sklearn.cluster import KMeans

    return {
        str(k): KMeans(k, n_init=1, random_state=0).fit_predict(centres).astype(np.int64)
        for k in cluster_sizes(4 * len(centres))
    }


def _places(plan: _Plan, artist: Int64Array, cluster: Int64Array, rng: np.random.Generator) -> Float32Array:
    """Draw a map: the two main axes of the clusters, artists around them, songs around their artist."""
    centred = plan.centres - plan.centres.mean(axis=0)
    axes = np.linalg.svd(centred)[2][:2]
    places = 20.0 * (centred @ axes.T)[cluster] + 4.0 * (plan.own @ axes.T)[artist]
    return (places + rng.standard_normal(places.shape)).astype(np.float32)
