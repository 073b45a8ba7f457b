"""Choose the pieces of songs that let one hear a codeword or an edge of the playlist graph."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from musicsim import codebook as codebooks
from musicsim._arrays import Float32Array
from musicsim.audio import HOP, SAMPLE_RATE, TYPICAL_S
from musicsim.errors import NotFoundError
from musicsim.explorer import (
    Snapshot,
    build_hypergraph,
    codebook_of,
    codeword_model,
    frame_blocks,
    load_sources,
    sample_evenly,
)
from musicsim.library import Library, ModelRecord, Song
from musicsim.progress import Progress, no_progress

_MAX_SONGS = 20_000  # maximum number of songs that are compared; their histograms take 80 MB
_SONGS_PER_GRAIN = 2  # songs that are read for each codeword grain; the nearest are used
_MAX_SUGGESTED = 5


@dataclass(frozen=True, slots=True)
class Grain:
    """A short piece of a song."""

    song: Song
    start_s: float
    seconds: float


def load_codebook(library: Library) -> tuple[ModelRecord, codebooks.Codebook]:
    """Return the library's codeword model and its codebook. Raises NotFoundError if there is none."""
    record, model = library.models.codewords(), codeword_model(library)
    if record is None or model is None:
        raise NotFoundError("the library has no codeword model: run `musicsim models add ppk` first.")
    return record, codebook_of(model)


def find_codeword_grains(
    library: Library, codeword: int, *, n: int, seconds: float, progress: Progress = no_progress
) -> list[Grain]:
    """Return pieces around the frames nearest to a codeword, from `n` different songs, the nearest first.

    The songs are those with the largest share of the codeword, among at most 20,000. Raises NotFoundError if the
    codeword or its model does not exist, or if the songs do not contain it.
    """
    record, codebook = load_codebook(library)
    if not 0 <= codeword < len(codebook.codewords_):
        raise NotFoundError(f"codeword {codeword} does not exist: choose 0 to {len(codebook.codewords_) - 1}.")
    stored = library.models.features(record.id)
    rows = sample_evenly(np.arange(len(stored.song_ids)), _MAX_SONGS)
    shares = stored.X[rows, codeword]
    most = np.argsort(-shares, kind="stable")[: n * _SONGS_PER_GRAIN]
    found: list[tuple[float, Grain]] = []
    songs = library.songs(stored.song_ids[rows[most[shares[most] > 0]]])
    for done, song in enumerate(songs):
        progress("reading frames", done, len(songs))
        blocks = frame_blocks(library, song)
        if blocks is not None:
            distance, frame = _find_nearest_frame(codebook, codeword, blocks)
            start_s = max(0.0, frame * HOP / SAMPLE_RATE - seconds / 2)
            found.append((distance, Grain(song, start_s, seconds)))
    if not found:
        raise NotFoundError(f"codeword {codeword} is not contained in the songs of this library.")
    return [grain for _, grain in sorted(found, key=lambda pair: pair[0])[:n]]


def _find_nearest_frame(
    codebook: codebooks.Codebook, codeword: int, blocks: Iterable[Float32Array]
) -> tuple[float, int]:
    """Return the smallest distance of a frame to a codeword, in z-scored units, and the frame's number."""
    center = codebook.codewords_[codeword]
    best, n_before = (np.inf, 0), 0
    for block in blocks:
        distances = np.linalg.norm((block - codebook.mean_) / codebook.scale_ - center, axis=1)
        at = int(distances.argmin())
        best = min(best, (float(distances[at]), n_before + at))
        n_before += len(block)
    return best


def find_edge_grains(snapshot: Snapshot, name: str, *, n: int, seconds: float) -> list[Grain]:
    """Return pieces of the `n` songs nearest to the mean vector of an edge's songs, each by another artist if possible.

    Each piece is the middle of the song's most typical 30 seconds. At most 20,000 songs are compared. Raises
    NotFoundError for an unknown edge.
    """
    graph = build_hypergraph(snapshot, load_sources(snapshot), own=True)
    if name not in graph.names:
        raise NotFoundError(f"the playlist graph does not contain the edge “{name}”.{_suggest(name, graph.names)}")
    rows = sample_evenly(graph.incidence[:, [graph.names.index(name)]].nonzero()[0], _MAX_SONGS)
    vectors = snapshot.vectors_at(rows)
    order = np.argsort(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1), kind="stable")
    songs = snapshot.songs_by_id(snapshot.row_ids[rows[order]])
    return [_typical_grain(song, seconds) for song in _vary_artists(songs)[:n]]


def _suggest(name: str, known: Sequence[str]) -> str:
    similar = difflib.get_close_matches(name, known, _MAX_SUGGESTED, 0.5) or known[:_MAX_SUGGESTED]
    return f" Similar names: {', '.join(f'“{one}”' for one in similar)}." if similar else ""


def _vary_artists(songs: Iterable[Song]) -> list[Song]:
    """Return the first song of each artist, and then the others; a song without an artist counts as one of its own."""
    firsts: dict[str | int, Song] = {}
    others = []
    for song in songs:
        if firsts.setdefault(song.artist or song.id, song) is not song:
            others.append(song)
    return [*firsts.values(), *others]


def _typical_grain(song: Song, seconds: float) -> Grain:
    length_s = min(TYPICAL_S, song.duration_s - song.typical_s)
    return Grain(song, song.typical_s + max(0.0, (length_s - seconds) / 2), seconds)
