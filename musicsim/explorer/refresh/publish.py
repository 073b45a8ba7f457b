"""Write a new model with its vectors, clusters and map into the library."""

from collections.abc import Callable, Mapping
from typing import Any

from musicsim.explorer.models.artifacts import save_report
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.playlists.fit import fit_walk
from musicsim.explorer.playlists.song_labels import read_words
from musicsim.explorer.refresh.placing import save_clusters_and_map
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress


def publish(
    library: Library,
    model: SimilarityModel,
    record: ModelRecord,
    *,
    fill: Callable[[], None],
    progress: Progress,
    report: Mapping[str, Any] | None = None,
    walk: bool = True,
    activate: bool = False,
) -> str:
    """Write a fitted model with everything that depends on it, and return its id; it becomes visible in the last step.

    `record` is new (:func:`musicsim.explorer.refresh.fitting.new_record`). `fill` adds the vectors of songs, after the
    model is registered. `report` has JSON values for the model's card. `walk` also fits the playlist walk, and
    `activate` uses the model from now on. The caller holds the library's lock, and always calls
    ``models.discard_unfinished`` afterwards.
    """
    folder = library.models.path(record.id)
    model.save(folder)
    if report:
        save_report(folder, report)
    library.models.register(record)
    fill()
    save_clusters_and_map(library, record, progress)
    if walk:
        read_words(library, progress)
        fit_walk(library, record.id, progress)
    library.models.finish(record.id, activate=activate)
    return record.id
