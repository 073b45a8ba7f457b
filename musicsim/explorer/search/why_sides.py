"""Collect the data of two songs from a library, for :mod:`musicsim.explorer.search.why`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array
from musicsim.errors import AudioTooShortError, FeatureVersionError, NotFoundError
from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.representations import CODEWORDS
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.search.query import Example, model_to_compare_with
from musicsim.explorer.search.why import Side, Why, explain_pair, stages_of
from musicsim.explorer.search.why_groups import GROUPS, Compared, sound_groups
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.models import Vectors

_SAMPLE = 300  # number of songs from which typical distances are computed; 1 MB


def explain_result(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side, Why]:
    """Return the query, the result, and an explanation of their similarity; raises NotFoundError or ModelError."""
    model = model_to_compare_with(snapshot)
    one, other = sides_of(snapshot, query, other_id)
    if model.representation in CODEWORDS:
        return one, other, explain_pair(one, other, model)
    compared = _compare(snapshot, model, query, other_id)
    why = explain_pair(one, other, model, codewords=codeword_model(snapshot.library), compared=compared)
    sounds = [snapshot.library.song(song) if isinstance(song, int) else song.frames for song in (query, other_id)]
    return one, other, replace(why, guesses=tuple(model.encoder_.find_shared_tags(snapshot.library, sounds)))


def _compare(snapshot: Snapshot, model: SimilarityModel, query: int | Example, other_id: int) -> Compared:
    """Return the features of two songs in groups: one per part of a joint model, or several if the part is Sound."""
    model_id = snapshot.record.id if snapshot.record else None
    songs = [_representative(snapshot, song) if isinstance(song, int) else song for song in (query, other_id)]
    song_ids = _features(snapshot.library, model_id, snapshot.revision).song_ids
    sample = np.random.default_rng(0).permutation(song_ids)[:_SAMPLE].tolist()
    whole = _compare_under(snapshot, model, model_id, songs, sample)
    encoder = model.encoder_
    if not isinstance(encoder, JointEncoder):
        return whole
    parts = []
    for part, part_id, block in zip(encoder.parts, encoder.model_ids, encoder.blocks, strict=True):
        assert isinstance(part, SimilarityModel)
        components = tuple(L[:, block] for L in whole.components)
        compared = Compared(
            (part.kind.description,), whole.group[block], whole.pair[:, block], whole.sample[:, block], components
        )
        if part.representation == SOUND:
            with suppress(NotFoundError):  # without stored features, Sound is a single group
                sound = _compare_under(snapshot, part, part_id, songs, sample)
                compared = replace(sound, components=tuple(L @ part.components_ for L in components))
        parts.append(compared)
    return Compared.concatenate(parts)


def _compare_under(
    snapshot: Snapshot, model: SimilarityModel, model_id: str | None, songs: Sequence[int | Example], sample: list[int]
) -> Compared:
    """Return features of two songs and of a sample under a model; raises NotFoundError if any are missing."""
    stored_ids = sample + [song for song in songs if isinstance(song, int)]
    stored = dict(zip(stored_ids, _rows(snapshot, model_id, stored_ids), strict=True))
    pair = [stored[song] if isinstance(song, int) else _example_features(snapshot, song, model) for song in songs]
    rows = [*pair, *(stored[song_id] for song_id in sample)]
    features = np.array([row for row in rows if row is not None])
    if len(features) < len(rows):
        raise NotFoundError(
            "some songs in this library have not been compared yet: wait until the running job has finished."
        )
    mapped = model.map_features(features)
    is_sound = model.representation == SOUND
    n = mapped.shape[1]
    return Compared(
        names=tuple(GROUPS) if is_sound else (model.kind.description,),
        group=sound_groups(n) if is_sound else np.zeros(n, dtype=np.int64),
        pair=mapped[: len(pair)],
        sample=mapped[len(pair) :],
        components=tuple(stage.components_ for stage in stages_of(model)),
    )


def _example_features(snapshot: Snapshot, example: Example, model: SimilarityModel) -> Float32Array | None:
    if model is snapshot.model:
        return example.features
    return model.features([example.frames])[0] if model.encoder_.uses_audio else None


def sides_of(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side]:
    """Return the data of a query and a result, with the parameters and errors of :func:`explain_result`."""
    if isinstance(query, int):
        first, second = _song_sides(snapshot, [query, other_id])
        return first, second
    (other,) = _song_sides(snapshot, [other_id])
    return _example_side(snapshot, query), other


def _example_side(snapshot: Snapshot, example: Example) -> Side:
    """Return the data of sound from outside the library, with tags and listeners if a song has the same sound."""
    song = next(iter(snapshot.songs_by_id([example.song_id] if example.song_id is not None else [])), None)
    histogram: Float32Array | None = example.features
    if not _compares_codewords(snapshot):
        codewords = codeword_model(snapshot.library)
        histogram = None if codewords is None else codewords.features([example.frames])[0]
    return Side(
        histogram=histogram,
        frame_blocks=example.frames.blocks(),
        peaks=example.peaks,
        duration_s=example.duration_s,
        title=example.name,
        song_id=example.song_id,
        starts_s=example.starts_s,
        tags=_tags(snapshot, song) if song else (),
        listeners=snapshot.library.listening.listeners_of([song.id])[song.id] if song else frozenset(),
    )


def _song_sides(snapshot: Snapshot, song_ids: list[int]) -> list[Side]:
    ids = [_representative(snapshot, song_id) for song_id in song_ids]
    record = snapshot.record if _compares_codewords(snapshot) else snapshot.library.models.codewords()
    histograms = [None] * len(ids) if record is None else _rows(snapshot, record.id, ids)
    listeners = snapshot.library.listening.listeners_of(song_ids)
    return [
        Side(
            histogram=histogram,
            frame_blocks=frame_blocks(snapshot.library, song),
            peaks=snapshot.library.outline(song.id),
            duration_s=song.duration_s,
            title=song.title,
            sub=song.by,
            song_id=song.id,
            tags=_tags(snapshot, song),
            listeners=listeners[song.id],
        )
        for song, histogram in zip(snapshot.songs_by_id(song_ids), histograms, strict=True)
    ]


def _compares_codewords(snapshot: Snapshot) -> bool:
    return snapshot.model is not None and snapshot.model.representation in CODEWORDS


def codeword_model(library: Library) -> SimilarityModel | None:
    """Return the library's codeword model, which finds shared passages; None if there is none."""
    record = library.models.codewords()
    return None if record is None else _load_model(library, record.id)


@lru_cache(maxsize=4)
def _load_model(library: Library, model_id: str) -> SimilarityModel:
    return SimilarityModel.load(library.models.path(model_id))


def _representative(snapshot: Snapshot, song_id: int) -> int:
    """Return the id under which a song's features are stored: its own or a duplicate's."""
    return int(snapshot.row_ids[snapshot.row_of(song_id)])


def _rows(snapshot: Snapshot, model_id: str | None, song_ids: list[int]) -> list[Float32Array | None]:
    stored = _features(snapshot.library, model_id, snapshot.revision)
    places = np.flatnonzero(np.isin(stored.song_ids, song_ids))
    place_of = dict(zip(stored.song_ids[places].tolist(), places.tolist(), strict=True))
    return [np.asarray(stored.X[place_of[song_id]]) if song_id in place_of else None for song_id in song_ids]


@lru_cache(maxsize=4)
def _features(library: Library, model_id: str | None, revision: int) -> Vectors:
    """Return a model's features; cached, because reading the song ids is slow."""
    return library.models.features(model_id)


def frame_blocks(library: Library, song: Song) -> Iterator[Float32Array] | None:
    """Return the delta-MFCCs of a song in blocks (n, 39); None if they are not stored in the current version."""
    try:
        return library.frame_files.frames(song.content_hash).blocks()
    except (FeatureVersionError, AudioTooShortError):  # frames are not stored or have a different version
        return None


def _tags(snapshot: Snapshot, song: Song) -> tuple[str, ...]:
    tags = tuple(tag for tag, _ in snapshot.tags_of([song.id]).get(song.id, ()))
    return tags or ((song.genre,) if song.genre else ())
