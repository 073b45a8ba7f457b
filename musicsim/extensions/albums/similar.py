"""Similar albums, and walks from album to album: distances between the mean vectors of albums."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from musicsim import kernels, search
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer import Snapshot
from musicsim.extensions.albums.catalogue import Album, list_albums
from musicsim.extensions.albums.request import AlbumPlaylistRequest, SimilarAlbumsRequest

_BLOCK = 10_000  # number of albums whose vectors are read together


@dataclass(frozen=True, slots=True)
class SimilarAlbum:
    """An album, and its similarity to another one, from 0 to 1."""

    album: Album
    similarity: float


class AlbumSpace:
    """The mean vectors of a snapshot's albums: one float32 vector per album with songs that have been compared."""

    def __init__(self, snapshot: Snapshot) -> None:
        albums, rows = [], []
        for album in list_albums(snapshot):
            own = np.unique(snapshot.rows_of(album.song_ids))
            own = own[own >= 0]
            if len(own):
                albums.append(album)
                rows.append(own)
        self.albums = albums
        self._place_of = {album.id: place for place, album in enumerate(albums)}
        self._reduces_hubs = bool(snapshot.library.settings["hub_reduction"])
        blocks = [_means(snapshot, rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)]
        self._means: Float32Array = np.concatenate(blocks) if blocks else np.empty((0, 0), dtype=np.float32)

    @cached_property
    def _proximity(self) -> search.MutualProximity:
        return search.MutualProximity().fit(self._means)

    def place_of(self, album: Album) -> int:
        """Return an album's position in `albums`; raise NotFoundError if none of its songs has a vector."""
        if album.id not in self._place_of:
            raise NotFoundError(f"{album.label} has not been compared yet: wait until the running job has finished.")
        return self._place_of[album.id]

    def nearest(self, place: int) -> Iterator[tuple[int, float]]:
        """Return the positions of the other albums and their distances after hub reduction, nearest first."""
        distances: Float64Array = np.linalg.norm(self._means - self._means[place], axis=1).astype(np.float64)
        if self._reduces_hubs:
            moments = self._proximity.mean_[place], self._proximity.std_[place]
            distances = self._proximity.rescore(distances, np.arange(len(distances)), moments)
        order: Int64Array = np.argsort(distances, kind="stable")
        return ((other, float(distances[other])) for other in order.tolist() if other != place)


def _means(snapshot: Snapshot, rows: list[Int64Array]) -> Float32Array:
    X = snapshot.vectors_at(np.concatenate(rows)).astype(np.float64)
    sizes = np.array([len(own) for own in rows])
    starts = np.cumsum(sizes) - sizes
    means: Float32Array = (np.add.reduceat(X, starts, axis=0) / sizes[:, None]).astype(np.float32)
    return means


album_space = lru_cache(maxsize=2)(AlbumSpace)


def find_similar_albums(snapshot: Snapshot, album: Album, request: SimilarAlbumsRequest) -> list[SimilarAlbum]:
    """Return the albums most similar to an album, with at most `per_artist` by the same artist."""
    space = album_space(snapshot)
    chosen, n_by = list[SimilarAlbum](), Counter[str]()
    for place, distance in space.nearest(space.place_of(album)):
        other = space.albums[place]
        n_by[other.group] += 1
        if not request.per_artist or n_by[other.group] <= request.per_artist:
            chosen.append(SimilarAlbum(other, float(kernels.ppk_similarity(distance))))
        if len(chosen) == request.k:
            break
    return chosen


def walk_albums(snapshot: Snapshot, album: Album, request: AlbumPlaylistRequest) -> list[SimilarAlbum]:
    """Return a walk from an album: each step goes to the nearest new album of an artist who may still occur.

    The similarity of each album is that to the album before it. The walk is shorter if no more albums qualify.
    """
    space = album_space(snapshot)
    place = space.place_of(album)
    steps, seen, n_by = [SimilarAlbum(album, 1.0)], {place}, Counter([album.group])

    def may_follow(other: int) -> bool:
        is_full = request.per_artist and n_by[space.albums[other].group] >= request.per_artist
        return other not in seen and not is_full

    while len(steps) < request.length:
        step = next((step for step in space.nearest(place) if may_follow(step[0])), None)
        if step is None:
            break
        place, distance = step
        seen.add(place)
        n_by[space.albums[place].group] += 1
        steps.append(SimilarAlbum(space.albums[place], float(kernels.ppk_similarity(distance))))
    return steps
