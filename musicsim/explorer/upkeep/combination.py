"""Making several models of a library into one space to learn on, which nobody sees by itself."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.representations import COMBINED
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.progress import Tell
from musicsim.explorer.upkeep.fitting import SONGS_FOR_AXES, new_record
from musicsim.explorer.upkeep.placing import SEED
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord

COMBINED_KIND = "combined"
_ROWS = 4_096


def combine(library: Library, records: Sequence[ModelRecord], tell: Tell) -> ModelRecord:
    """Join the vectors of models for all songs that have one of them; the model is not finished.

    Parameters
    ----------
    records : sequence of ModelRecord
        Two or more.

    Notes
    -----
    Scales, and what foresees missing sources, are taken from a seeded sample of 20,000 songs. Memory: 4 bytes times
    songs times dimensions of all; 120 MB for 100,000 songs of 300.
    """
    tell("combining models")
    parts = tuple(SimilarityModel.load(library.models.path(record.id)) for record in records)
    encoder = JointEncoder(tuple(r.name for r in records), tuple(r.id for r in records), parts)
    stored = [library.vectors(record.id) for record in records]
    every = np.concatenate([rows.song_ids for rows in stored])
    # in the order of the first: artists are parted alike whether a metric is learned on it alone or on several
    _, first, place = np.unique(every, return_index=True, return_inverse=True)
    ids = every[np.sort(first)]
    rank = np.argsort(np.argsort(first))[place.ravel()]
    features = np.full((len(ids), encoder.n_features), np.nan, dtype=np.float32)
    starts = np.cumsum([0, *(len(rows.song_ids) for rows in stored)])
    for rows, block, start in zip(stored, encoder.blocks, starts, strict=False):
        features[rank[start : start + len(rows.song_ids)], block] = rows.X
    model = SimilarityModel(COMBINED, random_state=SEED).use_encoder(encoder)
    some = np.sort(np.random.default_rng(SEED).permutation(len(ids))[:SONGS_FOR_AXES])
    model.fit_space(features[some])
    record = new_record(
        COMBINED_KIND, COMBINED, model, len(ids),
        sources=list(encoder.names), model_ids=list(encoder.model_ids), keys=encoder.own_keys(),
    )  # fmt: skip
    record = replace(record, name=record.id)
    model.save(library.models.path(record.id))
    library.models.register(record)
    for start in range(0, len(ids), _ROWS):
        block_of = features[start : start + _ROWS]
        library.models.append(
            record.id, ids[start : start + _ROWS].tolist(), block_of, model.vectors(block_of)
        )
    return record


def hide(library: Library, record: ModelRecord) -> None:
    """Finish a combination, and keep it for the models that share its features alone."""
    library.models.finish(record.id)
    library.models.delete(record.id)


def replaced_sources(library: Library, record: ModelRecord) -> list[str]:
    """Names of a combination's sources under which there is another model by now."""
    now = {other.name: other.id for other in library.models.all()}
    pairs = zip(record.settings.get("sources", ()), record.settings.get("model_ids", ()), strict=False)
    return [name for name, model_id in pairs if now.get(name, model_id) != model_id]
