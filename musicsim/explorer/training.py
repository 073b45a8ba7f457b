"""Fitting the similarity model of a library and all that follows from it.

One rule decides what is done: a model is fitted when there is none, when the library has doubled
since the last fit (and the frames are still there), or when it is asked for. Otherwise new songs are
placed under the model as it is.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim.audio import FEATURE_VERSION
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.artifacts import load_clusters, load_map, save_clusters, save_map
from musicsim.explorer.map import MapPlacer, fit_map
from musicsim.explorer.same_sound import find_new
from musicsim.explorer.similarity_model import SimilarityModel
from musicsim.explorer.walk import fit_walk
from musicsim.library import Library, Song
from musicsim.library.model_store import ModelRecord

__all__ = ["NATIVE", "Step", "needs_fit", "refresh"]

_log = logging.getLogger(__name__)

NATIVE = "as it sounds"
_SEED = 0
_TRAINING_FRAMES = 200_000  # 31 MB; 195 a codeword at 1,024 codewords
_FEWEST_FRAMES_A_SONG = 50  # beyond 4,000 songs a seeded sample of the songs is used
_SONGS_FOR_PCA = 20_000  # 82 MB of histograms at 1,024 codewords
_BLOCK = 64
_CLUSTERS = (16, 64, 256)
_SONGS_A_CLUSTER = 4
_GROWTH_FOR_NEW_MAP = 1.2


@dataclass(frozen=True, slots=True)
class Step:
    """What :func:`refresh` is doing: words, and how much of this step is done."""

    message: str
    done: int = 0
    total: int = 0


StepCallback = Callable[[Step], bool | None]


class _Stopped(Exception):
    """The callback asked to stop."""


def needs_fit(library: Library, n_songs: int) -> bool:
    """Whether the model in use is missing, of another feature version, or fitted on half as many songs."""
    record = library.models.active()
    if record is None or n_songs >= 2 * record.n_songs_fitted:
        return True
    try:
        SimilarityModel.load(library.models.path(record.id))
    except (ModelError, FeatureVersionError) as error:
        _log.warning("The model in use cannot be read and is fitted again: %s", error)
        return True
    return False


def refresh(library: Library, *, force: bool = False, progress: StepCallback | None = None) -> bool:
    """Bring the model, vectors, clusters, map and walk of a library up to its songs.

    Parameters
    ----------
    library : Library
    force : bool
        Fit the codebook again even if the rule above does not ask for it.
    progress : callable, optional
        Called with a :class:`Step`; True stops between two steps, and the model in use stays.

    Returns
    -------
    bool
        False when it was stopped.

    Raises
    ------
    StoreLockedError
        If another process is adding to this library.
    FeatureVersionError
        If a fit was asked for and the frames of some songs were not kept.
    """

    def tell(message: str, done: int = 0, total: int = 0) -> None:
        if progress is not None and progress(Step(message, done, total)):
            raise _Stopped

    with library.exclusive():
        songs = library.songs()
        if not songs:
            return True
        try:
            kept = library.frame_files.kept()
            current = (s for s in songs if s.content_hash in kept and s.feature_version == FEATURE_VERSION)
            # by hash: the same songs give the same model, in whatever order they were added
            with_frames = sorted(current, key=lambda song: song.content_hash)
            complete = len(with_frames) == len(songs)
            if force and not complete:
                raise FeatureVersionError(
                    f"{library.folder}: the frames of {len(songs) - len(with_frames)} songs were not kept. Turn on "
                    f"keep_frames and add their folders again."
                )
            # without all frames a new model would lose songs that the one in use can compare
            if with_frames and (force or needs_fit(library, len(songs) if complete else 0)):
                _fit(library, with_frames, tell)
            _place_new(library, with_frames, tell)
            find_new(library, songs, tell)
            _update_clusters_and_map(library, tell)
            tell("fitting the playlist walk")
            fit_walk(library)
        except _Stopped:
            return False
        finally:
            library.models.discard_unfinished()
        if not library.settings["keep_frames"]:
            for song in songs:
                library.frame_files.drop(song.content_hash)
        library.note_refreshed()
    return True


def _sample_frames(
    library: Library, songs: Sequence[Song], tell: Callable[..., None]
) -> npt.NDArray[np.float32]:
    """Frames drawn evenly over the songs, at most :data:`_TRAINING_FRAMES`, seeded."""
    rng = np.random.default_rng(_SEED)
    most = _TRAINING_FRAMES // _FEWEST_FRAMES_A_SONG
    chosen = rng.permutation(len(songs))[:most]
    quota = _TRAINING_FRAMES // len(chosen)
    sample = []
    for done, i in enumerate(sorted(chosen)):
        if done % _BLOCK == 0:
            tell("listening for codewords", done, len(chosen))
        rows = np.sort(rng.permutation(len(library.frame_files.mfcc(songs[i].content_hash)))[:quota])
        start = 0
        for block in library.frame_files.blocks(songs[i].content_hash):
            here = rows[(rows >= start) & (rows < start + len(block))]
            sample.append(block[here - start])
            start += len(block)
    return np.concatenate(sample)


def _histogram_blocks(
    library: Library, model: SimilarityModel, songs: Sequence[Song], tell: Callable[..., None]
) -> Iterator[tuple[Sequence[Song], npt.NDArray[np.float32]]]:
    for start in range(0, len(songs), _BLOCK):
        tell("describing songs by codewords", start, len(songs))
        block = songs[start : start + _BLOCK]
        yield block, model.histograms(library.frame_files.blocks(song.content_hash) for song in block)


def _fit(library: Library, songs: Sequence[Song], tell: Callable[..., None]) -> None:
    """Fit a new native model on the songs and put it into use with their vectors."""
    model = SimilarityModel(random_state=_SEED).fit_codebook(_sample_frames(library, songs, tell))
    order = [songs[i] for i in np.random.default_rng(_SEED).permutation(len(songs))]
    first, rest = order[:_SONGS_FOR_PCA], order[_SONGS_FOR_PCA:]
    first_histograms = np.concatenate([h for _, h in _histogram_blocks(library, model, first, tell)])
    model.fit_space(first_histograms)
    model_id = f"native-{uuid.uuid4().hex[:8]}"
    model.save(library.models.path(model_id))
    record = ModelRecord(
        id=model_id,
        name=NATIVE,
        created_at=time.time(),
        n_songs_fitted=len(songs),
        n_codewords=model.codebook_.n_codewords,
        n_dimensions=model.n_dimensions,
    )
    library.models.register(record)
    _append(library, model, model_id, first, first_histograms)
    for block, histograms in _histogram_blocks(library, model, rest, tell):
        _append(library, model, model_id, block, histograms)
    ids = np.array([song.id for song in order], dtype=np.int64)
    _save_clusters_and_map(library, model_id, ids, library.vectors(model_id).X, tell)
    library.models.activate(model_id)


def _append(
    library: Library,
    model: SimilarityModel,
    model_id: str,
    songs: Sequence[Song],
    histograms: npt.NDArray[np.float32],
) -> None:
    library.models.append(model_id, [song.id for song in songs], histograms, model.vectors(histograms))


def _place_new(library: Library, songs: Sequence[Song], tell: Callable[..., None]) -> None:
    """Give songs with frames but without a vector one under the model in use."""
    record = library.models.active()
    if record is None:
        raise FeatureVersionError(
            f"{library.folder}: no frames are kept to fit a model on. Turn on keep_frames and add the folders again."
        )
    known = set(library.vectors(record.id).song_ids.tolist())
    new = [song for song in songs if song.id not in known]
    if new:
        model = SimilarityModel.load(library.models.path(record.id))
        for block, histograms in _histogram_blocks(library, model, new, tell):
            _append(library, model, record.id, block, histograms)


def cluster_sizes(n_songs: int) -> list[int]:
    """Numbers of clusters for a collection: those of 16, 64, 256 that leave 4 songs a cluster on average."""
    return [k for k in _CLUSTERS if n_songs >= _SONGS_A_CLUSTER * k] or [max(1, n_songs // _SONGS_A_CLUSTER)]


def _fit_clusters(X: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[np.int64]]:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    labels = {}
    for k in cluster_sizes(len(X)):
        kind = KMeans if len(X) <= 5_000 else MiniBatchKMeans
        labels[str(k)] = kind(k, n_init=3, random_state=_SEED).fit_predict(X).astype(np.int64)
    return labels


def _save_clusters_and_map(
    library: Library,
    model_id: str,
    ids: npt.NDArray[np.int64],
    X: npt.NDArray[np.float32],
    tell: Callable[..., None],
) -> None:
    folder = library.models.path(model_id)
    tell("grouping songs into clusters")
    save_clusters(folder, ids, _fit_clusters(X))
    tell("drawing the map")
    save_map(folder, ids, fit_map(X))


def _update_clusters_and_map(library: Library, tell: Callable[..., None]) -> None:
    """Place songs that joined since the map was drawn; draw it anew when it has grown by a fifth."""
    rows = library.vectors()
    folder = library.models.path(rows.model_id)
    mapped, places = load_map(folder)
    row_of = {song_id: row for row, song_id in enumerate(rows.song_ids.tolist())}
    kept = np.array([i in row_of for i in mapped.tolist()], dtype=bool)
    new = np.setdiff1d(rows.song_ids, mapped)
    if not len(new):
        return
    if len(rows.song_ids) >= _GROWTH_FOR_NEW_MAP * kept.sum():
        _save_clusters_and_map(library, rows.model_id, rows.song_ids, rows.X, tell)
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
