"""Songs under a model: their features and vectors, their clusters, their places on the map."""

from collections.abc import Mapping, Sequence

import numpy as np

from musicsim._arrays import Float32Array, Int64Array, places_among
from musicsim.audio import MIN_FEATURE_VERSION
from musicsim.explorer.models.artifacts import load_clusters, load_map, save_clusters, save_map
from musicsim.explorer.models.encoders import has_features
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.explorer.refresh.map_layout import MapPlacer, fit_map
from musicsim.explorer.snapshot import neighbours
from musicsim.library import Library, Song
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress

SEED = 0
_ROWS = 4096
_CLUSTERS = (16, 64, 256)
_SONGS_A_CLUSTER = 4
_GROWTH_FOR_NEW_MAP = 1.2


def songs_with_frames(library: Library, songs: Sequence[Song]) -> list[Song]:
    """Songs whose frames are kept, in a version that this one can read."""
    kept = library.frame_files.kept_of([song.content_hash for song in songs])
    readable = (s for s in songs if s.content_hash in kept and s.feature_version >= MIN_FEATURE_VERSION)
    # by hash: the same songs give the same model, in whatever order they were added
    return sorted(readable, key=lambda song: song.content_hash)


def place_new(library: Library, record: ModelRecord, progress: Progress) -> None:
    """Give songs with frames that have what a model's features are made of, but no vector, one under it as it is.

    Of a large library only the songs without a vector are read. Raises ModelError if the vectors of others are gone.
    """
    if record.base_id is not None:
        follow_owner(library, record)
        return
    known = library.models.song_rows(record.id)
    library.models.vector_file(record.id, known)
    missing = np.setdiff1d(library.table().ids, known.song_ids)
    new = songs_with_frames(library, library.songs(missing.tolist())) if len(missing) else []
    if not new:
        return
    model = SimilarityModel.load(library.models.path(record.id))
    for block, features in feature_blocks(library, model, new, progress):
        ids = [song.id for song in block]
        kept = np.flatnonzero(has_features(features))  # songs without any tag have no place among tags
        if len(kept):
            rows = [ids[i] for i in kept.tolist()]
            library.models.append(record.id, rows, features[kept], model.vectors(features[kept]))


def follow_owner(library: Library, record: ModelRecord) -> None:
    """Give a model that shares another one's features the vectors of all songs that have them."""
    owned = library.models.features(record.id)
    rows = np.flatnonzero(~np.isin(owned.song_ids, library.vectors(record.id).song_ids))
    if not len(rows):
        return
    model = SimilarityModel.load(library.models.path(record.id))
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS]
        vectors = model.vectors(owned.X[block])
        library.models.append(record.id, owned.song_ids[block].tolist(), None, vectors)


def cluster_sizes(n_songs: int) -> list[int]:
    """Numbers of clusters for a collection: those of 16, 64, 256 that leave 4 songs a cluster on average."""
    return [k for k in _CLUSTERS if n_songs >= _SONGS_A_CLUSTER * k] or [max(1, n_songs // _SONGS_A_CLUSTER)]


def _fit_clusters(X: Float32Array) -> dict[str, Int64Array]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    labels = {}
    for k in cluster_sizes(len(X)):
        kind = KMeans if len(X) <= 5_000 else MiniBatchKMeans
        labels[str(k)] = kind(k, n_init=3, random_state=SEED).fit_predict(X).astype(np.int64)
    return labels


def save_clusters_and_map(library: Library, record: ModelRecord, progress: Progress) -> None:
    """Group all songs of a model, draw its map and put them in order for searching.

    The map of a model that was learned on another one starts from that one's map.
    """
    rows = library.vectors(record.id)
    folder = library.models.path(record.id)
    progress("grouping songs into clusters")
    labels = _fit_clusters(rows.X)
    progress("drawing the map")
    start = _places_of(library, record.base_id, rows.song_ids) if record.base_id else None
    places = fit_map(rows.X, start=start)
    # both are written when both are there: a job that is stopped before leaves them as they were
    save_clusters(folder, rows.song_ids, labels)
    save_map(folder, rows.song_ids, places)
    _update_index(library, record, progress)


def _update_index(library: Library, record: ModelRecord, progress: Progress) -> None:
    X = library.models.vector_file(record.id, library.models.song_rows(record.id))
    settings = library.settings
    if neighbours.index_kind(X.shape, settings["index_kind"]) != "exact":
        progress("putting songs in order for searching")
        neighbours.update_index(library.models.path(record.id), X, settings["index_memory_mb"], settings["index_kind"])


def _places_of(library: Library, model_id: str, song_ids: Int64Array) -> Float32Array | None:
    """Where songs stand on the map of another model; None unless it has all of them."""
    ids, places = load_map(library.models.path(model_id))
    entries = places_among(ids, song_ids)
    return None if not len(entries) or entries.min() < 0 else places[entries]


def update_clusters_and_map(library: Library, record: ModelRecord, progress: Progress) -> None:
    """Place songs that joined since the map was drawn, and in the index; draw it again when it has grown by a fifth.

    The map and the clusters are looked at by themselves: a job may have been killed when it had written one of them.
    """
    _update_index(library, record, progress)
    rows = library.vectors(record.id)
    folder = library.models.path(record.id)
    (mapped, places), (grouped, labels) = load_map(folder), load_clusters(folder)
    on_map, in_clusters = places_among(mapped, rows.song_ids), places_among(grouped, rows.song_ids)
    if min(on_map.min(initial=0), in_clusters.min(initial=0)) >= 0:
        return
    if _has_outgrown(on_map):
        save_clusters_and_map(library, record, progress)
        return
    progress("placing new songs on the map")
    labels = _labels_of_all(rows.X, labels, in_clusters)
    places = _places_of_all(rows.X, places, on_map)
    save_clusters(folder, rows.song_ids, labels)
    save_map(folder, rows.song_ids, places)


def _has_outgrown(entries: Int64Array) -> bool:
    """Whether songs have become too many for what was made of those that have an entry."""
    return len(entries) >= _GROWTH_FOR_NEW_MAP * int(np.count_nonzero(entries >= 0))


def _places_of_all(X: Float32Array, places: Float32Array, entries: Int64Array) -> Float32Array:
    """Places of all songs, in the order of `X`; those with an entry keep theirs."""
    completed, is_new = places[entries], entries < 0
    if is_new.any():
        completed[is_new] = np.nan  # the placer leaves them out
        completed[is_new] = MapPlacer(X, completed).place(X[is_new])
    return completed


def _labels_of_all(X: Float32Array, labels: Mapping[str, Int64Array], entries: Int64Array) -> dict[str, Int64Array]:
    """Labels of all songs, in the order of `X`; those with an entry keep theirs, or all are grouped again."""
    if _has_outgrown(entries):
        return _fit_clusters(X)
    completed, is_new = {k: values[entries] for k, values in labels.items()}, entries < 0
    if is_new.any():
        known, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        for values in completed.values():
            values[new] = _nearest_centre(X, known, values[known], X[new])
    return completed


def _nearest_centre(X: Float32Array, known: Int64Array, labels: Int64Array, X_new: Float32Array) -> Int64Array:
    """Labels of new songs: the cluster whose mean is nearest; `labels` are those of the rows `known` of `X`."""
    from scipy import sparse
    from sklearn.metrics import pairwise_distances_argmin

    names, clusters, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    # sums of rows, without a copy of the songs of each cluster
    belongs = sparse.csr_array((np.ones(len(known), dtype=X.dtype), (clusters, known)), shape=(len(names), len(X)))
    centres = (belongs @ X) / sizes[:, None].astype(X.dtype)
    return names[pairwise_distances_argmin(X_new, centres)]
