"""Join the vectors of several models in one space: for a training, or as a model of its own."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from musicsim.errors import ModelError
from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.representations import COMBINED
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import SONGS_FOR_AXES, new_record, publish
from musicsim.explorer.refresh.placing import SEED
from musicsim.library import Library, ModelRecord
from musicsim.progress import Progress

COMBINED_KIND: str = "combined"
JOINED_KIND: str = "joined"
_ROWS = 4_096


def join_models(library: Library, names: Sequence[str], name: str, progress: Progress, *, use: bool = False) -> str:
    """Make a model of several models that contribute equally to distances, and return its id.

    Songs that lack a vector in some of the models are placed by the others. `use` makes the model active. Raises
    NotFoundError for an unknown name, and ModelError for fewer than two models.
    """
    with library.exclusive("joining models"):
        try:
            return join_unlocked(library, names, name, progress, use=use)
        finally:
            library.models.discard_unfinished()


def join_unlocked(library: Library, names: Sequence[str], name: str, progress: Progress, *, use: bool = False) -> str:
    """Do the work of :func:`join_models`; the caller holds the library's lock."""
    records = [library.models.find(one) for one in dict.fromkeys(names)]
    if len(records) < 2:
        raise ModelError("joining needs the names of at least two models.")
    model, record, fill = _join(library, records, JOINED_KIND, name, progress)
    return publish(library, model, record, fill=fill, progress=progress, activate=use)


def combine(library: Library, records: Sequence[ModelRecord], progress: Progress) -> ModelRecord:
    """Join models for a training; the new model is hidden and left unfinished."""
    model, record, fill = _join(library, records, COMBINED_KIND, COMBINED, progress)
    record = replace(record, name=record.id)
    model.save(library.models.path(record.id))
    library.models.register(record)
    fill()
    return record


def _join(
    library: Library, records: Sequence[ModelRecord], kind: str, name: str, progress: Progress
) -> tuple[SimilarityModel, ModelRecord, Callable[[], None]]:
    """Return the model and record, and a function that stores the vectors of songs that any of the models describes.

    Scales, and the regression that fills in missing sources, are fitted on a seeded sample of 20,000 songs. Memory for
    100,000 songs with 300 dimensions in total: 120 MB.
    """
    progress("combining models")
    parts = tuple(SimilarityModel.load(library.models.path(record.id)) for record in records)
    encoder = JointEncoder(tuple(r.name for r in records), tuple(r.id for r in records), parts)
    stored = [library.vectors(record.id) for record in records]
    all_ids = np.concatenate([rows.song_ids for rows in stored])
    # keep the order of the first model, so that artists are split the same way with one or several models
    _, first, place = np.unique(all_ids, return_index=True, return_inverse=True)
    ids = all_ids[np.sort(first)]
    rank = np.argsort(np.argsort(first))[place.ravel()]
    features = np.full((len(ids), encoder.n_features), np.nan, dtype=np.float32)
    starts = np.cumsum([0, *(len(rows.song_ids) for rows in stored)])
    for vectors, block, start in zip(stored, encoder.blocks, starts, strict=False):
        features[rank[start : start + len(vectors.song_ids)], block] = vectors.X
    model = SimilarityModel(COMBINED, random_state=SEED).use_encoder(encoder)
    sample = np.sort(np.random.default_rng(SEED).permutation(len(ids))[:SONGS_FOR_AXES])
    model.fit_space(features[sample])
    record = new_record(
        kind, name, model, len(ids),
        sources=list(encoder.names), model_ids=list(encoder.model_ids), keys=encoder.own_keys(),
    )  # fmt: skip

    def fill() -> None:
        for start in range(0, len(ids), _ROWS):
            rows = features[start : start + _ROWS]
            library.models.append(record.id, ids[start : start + _ROWS].tolist(), rows, model.vectors(rows))

    return model, record, fill


def find_replaced_sources(library: Library, record: ModelRecord) -> list[str]:
    """Return the names of a combined model's sources that now belong to different models."""
    current = {other.name: other.id for other in library.models.all()}
    pairs = zip(record.settings.get("sources", ()), record.settings.get("model_ids", ()), strict=False)
    return [name for name, model_id in pairs if current.get(name, model_id) != model_id]
