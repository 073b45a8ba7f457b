"""Compute the features, vectors, clusters and map places of songs under a model."""

from collections.abc import Mapping, Sequence

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim.audio import MIN_FEATURE_VERSION
from musicsim.errors import FeatureVersionError
from musicsim.explorer.models.artifacts import load_clusters, load_map, save_clusters, save_map
from musicsim.explorer.models.encoders import has_features
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.explorer.refresh.map_layout import MapPlacer, fit_map
from musicsim.explorer.snapshot import neighbors
from musicsim.library import Library, ModelRecord, Song
from musicsim.places import places_among
from musicsim.progress import Progress

SEED = 0
_ROWS = 4096
_CLUSTERS = (16, 64, 256)
_SONGS_PER_CLUSTER = 4
_GROWTH_FOR_NEW_MAP = 1.2


def songs_with_frames(library: Library, songs: Sequence[Song]) -> list[Song]:
    """Return songs with readable frames, sorted by hash so that models do not depend on when songs were added."""
    stored = library.frame_files.find_stored([song.content_hash for song in songs])
    readable = (s for s in songs if s.content_hash in stored and s.feature_version >= MIN_FEATURE_VERSION)
    return sorted(readable, key=lambda song: song.content_hash)


def missing_features(library: Library, problem: str) -> FeatureVersionError:
    """Return an error that explains how to store missing frames."""
    return FeatureVersionError(
        f"{library.folder}: {problem}. Turn on “Store audio features” (Library > Settings; keep_frames on the command "
        "line) and add their folders again."
    )


def place_new(library: Library, record: ModelRecord, progress: Progress) -> None:
    """Add vectors of new songs with frames to an unchanged model; raises ModelError if stored vectors are missing."""
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
        rows = np.flatnonzero(has_features(features))  # songs without tags do not have tag features
        if len(rows):
            ids = [block[i].id for i in rows.tolist()]
            library.models.append(record.id, ids, features[rows], model.vectors(features[rows]))


def follow_owner(library: Library, record: ModelRecord) -> None:
    """Add vectors of all songs with features to a model that shares another model's features."""
    owned = library.models.features(record.id)
    rows = np.flatnonzero(~np.isin(owned.song_ids, library.vectors(record.id).song_ids))
    if not len(rows):
        return
    model = SimilarityModel.load(library.models.path(record.id))
    for start in range(0, len(rows), _ROWS):
        block = rows[start : start + _ROWS]
        library.models.append(record.id, owned.song_ids[block].tolist(), None, model.vectors(owned.X[block]))


def cluster_sizes(n_songs: int) -> list[int]:
    """Return the cluster counts to use: 16, 64 and 256, as long as a cluster has at least 4 songs on average."""
    return [k for k in _CLUSTERS if n_songs >= _SONGS_PER_CLUSTER * k] or [max(1, n_songs // _SONGS_PER_CLUSTER)]


def _fit_clusters(X: Float32Array) -> dict[str, Int64Array]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    labels = {}
    for k in cluster_sizes(len(X)):
        estimator = KMeans if len(X) <= 5_000 else MiniBatchKMeans
        labels[str(k)] = estimator(k, n_init=3, random_state=SEED).fit_predict(X).astype(np.int64)
    return labels


def save_clusters_and_map(library: Library, record: ModelRecord, progress: Progress) -> None:
    """Fit a model's clusters, map and search index; a learned model's map starts from its base model's map."""
    rows = library.vectors(record.id)
    folder = library.models.path(record.id)
    progress("grouping songs into clusters")
    labels = _fit_clusters(rows.X)
    progress("drawing the map")
    start = None
    if record.base_id is not None:
        base_ids, base_places = load_map(library.models.path(record.base_id))
        entries = places_among(base_ids, rows.song_ids)
        start = base_places[entries] if len(entries) and entries.min() >= 0 else None
    places = fit_map(rows.X, start=start)
    # saved only when both are complete, so that a canceled job changes neither
    save_clusters(folder, rows.song_ids, labels)
    save_map(folder, rows.song_ids, places)
    _update_index(library, record, progress)


def _update_index(library: Library, record: ModelRecord, progress: Progress) -> None:
    X = library.models.vector_file(record.id, library.models.song_rows(record.id))
    choice = library.settings["index_kind"]
    if neighbors.index_kind(len(X), choice) != "exact":
        progress("building the search index")
        neighbors.update_index(library.models.path(record.id), X, choice)


def update_clusters_and_map(library: Library, record: ModelRecord, progress: Progress) -> None:
    """Add new songs to the index, clusters and map; refit clusters and map if the library has grown by a fifth."""
    _update_index(library, record, progress)
    rows = library.vectors(record.id)
    folder = library.models.path(record.id)
    # a killed job may have written only the map or only the clusters
    (map_ids, places), (cluster_ids, labels) = load_map(folder), load_clusters(folder)
    on_map, in_clusters = places_among(map_ids, rows.song_ids), places_among(cluster_ids, rows.song_ids)
    if min(on_map.min(initial=0), in_clusters.min(initial=0)) >= 0:
        return
    if _has_outgrown(on_map):
        save_clusters_and_map(library, record, progress)
        return
    progress("placing new songs on the map")
    labels, places = _complete_labels(rows.X, labels, in_clusters), _complete_places(rows.X, places, on_map)
    save_clusters(folder, rows.song_ids, labels)
    save_map(folder, rows.song_ids, places)


def _has_outgrown(entries: Int64Array) -> bool:
    """Return True if the share of new songs (-1) is so large that a refit is better than an update."""
    return len(entries) >= _GROWTH_FOR_NEW_MAP * int(np.count_nonzero(entries >= 0))


def _complete_places(X: Float32Array, places: Float32Array, entries: Int64Array) -> Float32Array:
    """Return the places of all songs in the order of `X`; songs with an entry keep their place."""
    completed, is_new = places[entries], entries < 0
    if is_new.any():
        completed[is_new] = np.nan  # the placer ignores nan
        completed[is_new] = MapPlacer(X, completed).place(X[is_new])
    return completed


def _complete_labels(X: Float32Array, labels: Mapping[str, Int64Array], entries: Int64Array) -> dict[str, Int64Array]:
    """Return the labels of all songs in the order of `X`; existing labels change only if all are refitted."""
    if _has_outgrown(entries):
        return _fit_clusters(X)
    completed, is_new = {k: values[entries] for k, values in labels.items()}, entries < 0
    if is_new.any():
        known, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        for values in completed.values():
            values[new] = _nearest_cluster(X, known, values[known], X[new])
    return completed


def _nearest_cluster(X: Float32Array, known: Int64Array, labels: Int64Array, X_new: Float32Array) -> Int64Array:
    """Return the cluster with the nearest mean per row of `X_new`; `labels` belong to the rows `known` of `X`."""
    from scipy import sparse
    from sklearn.metrics import pairwise_distances_argmin

    names, clusters, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    # a sparse product sums the rows of each cluster without copying them
    belongs = sparse.csr_array((np.ones(len(known), dtype=X.dtype), (clusters, known)), shape=(len(names), len(X)))
    centers = (belongs @ X) / sizes[:, None].astype(X.dtype)
    return names[pairwise_distances_argmin(X_new, centers)]
