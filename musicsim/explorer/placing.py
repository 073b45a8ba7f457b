"""Songs under a model: their features and vectors, their clusters, their places on the map."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from musicsim.explorer.artifacts import load_clusters, load_map, save_clusters, save_map
from musicsim.explorer.map import MapPlacer, fit_map
from musicsim.explorer.progress import Tell
from musicsim.explorer.representations import has_features
from musicsim.explorer.similarity_model import SimilarityModel
from musicsim.explorer.song_features import feature_blocks
from musicsim.library import Library, Song
from musicsim.library.model_store import ModelRecord

__all__ = [
    "SEED",
    "cluster_sizes",
    "follow_owner",
    "place_new",
    "save_clusters_and_map",
    "update_clusters_and_map",
]

SEED = 0
_ROWS = 4096
_CLUSTERS = (16, 64, 256)
_SONGS_A_CLUSTER = 4
_GROWTH_FOR_NEW_MAP = 1.2


def place_new(library: Library, record: ModelRecord, songs: Sequence[Song], tell: Tell) -> None:
    """Give songs without a vector one under a model, which stays as it is.

    Parameters
    ----------
    songs : sequence of Song
        Those that have what the model's features are made of.
    """
    if record.base_id is not None:
        follow_owner(library, record)
        return
    known = set(library.vectors(record.id).song_ids.tolist())
    new = [song for song in songs if song.id not in known]
    if not new:
        return
    model = SimilarityModel.load(library.models.path(record.id))
    for block, features in feature_blocks(library, model, new, tell):
        ids = [song.id for song in block]
        kept = np.flatnonzero(has_features(features))  # songs without any tag have no place among tags
        if len(kept):
            rows = [ids[i] for i in kept.tolist()]
            library.models.append(record.id, rows, features[kept], model.vectors(features[kept]))


def follow_owner(library: Library, record: ModelRecord) -> None:
    """Give a model that shares another one's features the vectors of all songs that have them."""
    owned = library.models.features(record.id)
    known = set(library.vectors(record.id).song_ids.tolist())
    new = np.array([i not in known for i in owned.song_ids.tolist()], dtype=bool)
    if not new.any():
        return
    model = SimilarityModel.load(library.models.path(record.id))
    rows = np.flatnonzero(new)
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS]
        vectors = model.vectors(owned.X[block])
        library.models.append(record.id, owned.song_ids[block].tolist(), None, vectors)


def cluster_sizes(n_songs: int) -> list[int]:
    """Numbers of clusters for a collection: those of 16, 64, 256 that leave 4 songs a cluster on average."""
    return [k for k in _CLUSTERS if n_songs >= _SONGS_A_CLUSTER * k] or [max(1, n_songs // _SONGS_A_CLUSTER)]


def _fit_clusters(X: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.int64]]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    labels = {}
    for k in cluster_sizes(len(X)):
        kind = KMeans if len(X) <= 5_000 else MiniBatchKMeans
        labels[str(k)] = kind(k, n_init=3, random_state=SEED).fit_predict(X).astype(np.int64)
    return labels


def save_clusters_and_map(library: Library, record: ModelRecord, tell: Tell) -> None:
    """Group all songs of a model, draw its map and put them in order for searching.

    The map of a model that was learned on another one starts from that one's map.
    """
    rows = library.vectors(record.id)
    folder = library.models.path(record.id)
    tell("grouping songs into clusters")
    save_clusters(folder, rows.song_ids, _fit_clusters(rows.X))
    tell("drawing the map")
    start = _places_of(library, record.base_id, rows.song_ids) if record.base_id else None
    save_map(folder, rows.song_ids, fit_map(rows.X, start=start))
    _update_index(library, record, tell)


def _update_index(library: Library, record: ModelRecord, tell: Tell) -> None:
    from musicsim.explorer.neighbours import INDEXED_FROM, update_index

    X = library.models.vector_file(record.id, library.models.song_rows(record.id))
    if len(X) >= INDEXED_FROM:
        tell("putting songs in order for searching")
        update_index(library.models.path(record.id), X, library.settings["index_memory_mb"])


def _places_of(
    library: Library, model_id: str, song_ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32] | None:
    """Where songs stand on the map of another model; None unless it has all of them."""
    ids, places = load_map(library.models.path(model_id))
    row_of = {song_id: row for row, song_id in enumerate(ids.tolist())}
    rows = [row_of.get(song_id, -1) for song_id in song_ids.tolist()]
    return None if not rows or min(rows) < 0 else places[rows]


def update_clusters_and_map(library: Library, record: ModelRecord, tell: Tell) -> None:
    """Place songs that joined since the map was drawn, and in the index; draw it anew when it has grown by a fifth."""
    _update_index(library, record, tell)
    rows = library.vectors(record.id)
    folder = library.models.path(record.id)
    mapped, places = load_map(folder)
    row_of = {song_id: row for row, song_id in enumerate(rows.song_ids.tolist())}
    kept = np.array([i in row_of for i in mapped.tolist()], dtype=bool)
    new = np.setdiff1d(rows.song_ids, mapped)
    if not len(new):
        return
    if len(rows.song_ids) >= _GROWTH_FOR_NEW_MAP * kept.sum():
        save_clusters_and_map(library, record, tell)
        return
    tell("placing new songs on the map")
    old_rows, new_rows = [row_of[i] for i in mapped[kept].tolist()], [row_of[i] for i in new.tolist()]
    X_old, X_new = rows.X[old_rows], rows.X[new_rows]
    ids = np.concatenate([mapped[kept], new])
    _, labels = load_clusters(folder)
    grown = {k: _nearest_centre(X_old, values[kept], X_new) for k, values in labels.items()}
    save_clusters(folder, ids, {k: np.concatenate([labels[k][kept], grown[k]]) for k in labels})
    # the map last: it is what says that these songs are placed
    save_map(folder, ids, np.concatenate([places[kept], MapPlacer(X_old, places[kept]).place(X_new)]))


def _nearest_centre(
    X: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], X_new: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    """Labels of new songs: the cluster whose mean is nearest."""
    from sklearn.neighbors import NearestCentroid

    if len(np.unique(labels)) < 2:
        return np.full(len(X_new), labels[0])
    return NearestCentroid().fit(X, labels).predict(X_new).astype(np.int64)
