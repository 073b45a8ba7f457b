"""The two songs of :mod:`musicsim.explorer.search.why`, as a library knows them, explained."""

from collections.abc import Iterator, Sequence
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
from musicsim.explorer.search.why import Side, Why, explain_pair
from musicsim.explorer.search.why_groups import GROUPS, Compared, sound_groups
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.models import Vectors

_SAMPLE = 300
"""Songs that say what is usual: 1 MB."""


def explained(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side, Why]:
    """A query and an answer to it, and why they are alike under the model in use.

    The query is a song id, or sound from outside. Raises NotFoundError if a song is not in the library or has not been
    compared yet; ModelError if the library has no model yet.
    """
    model = model_to_compare_with(snapshot)
    one, other = sides_of(snapshot, query, other_id)
    if model.representation in CODEWORDS:
        return one, other, explain_pair(one, other, model)
    compared = _compared(snapshot, model, query, other_id)
    return one, other, explain_pair(one, other, model, codewords=_codewords(snapshot), compared=compared)


def _compared(snapshot: Snapshot, model: SimilarityModel, query: int | Example, other_id: int) -> Compared:
    """What a model compares of the two songs; of several models together each of them, those of Sound in its groups."""
    in_use = snapshot.record.id if snapshot.record else None
    songs = [_shown_id(snapshot, song) if isinstance(song, int) else song for song in (query, other_id)]
    song_ids = _features(snapshot.library, in_use, snapshot.revision).song_ids
    sample = np.random.default_rng(0).permutation(song_ids)[:_SAMPLE].tolist()
    whole = _grouped(snapshot, model, in_use, songs, sample)
    encoder = model.encoder_
    if not isinstance(encoder, JointEncoder):
        return whole
    parts = []
    for part, model_id, block in zip(encoder.parts, encoder.model_ids, encoder.blocks, strict=True):
        assert isinstance(part, SimilarityModel)
        of_part = replace(
            whole,
            names=(part.kind.description,),
            group=whole.group[block],
            pair=whole.pair[:, block],
            sample=whole.sample[:, block],
            before=whole.before[:, block],
            after=None if whole.after is None else whole.after[:, block],
        )
        parts.append(_finer(snapshot, part, model_id, of_part, songs, sample))
    return Compared.joined(parts)


def _finer(
    snapshot: Snapshot,
    part: SimilarityModel,
    model_id: str,
    of_part: Compared,
    songs: Sequence[int | Example],
    sample: list[int],
) -> Compared:
    """What a Sound model compares that is one of several; what else is one, or is no longer here, stays a group."""
    if part.representation != SOUND:
        return of_part
    try:
        grouped = _grouped(snapshot, part, model_id, songs, sample)
    except NotFoundError:
        return of_part
    axes = part.components_
    return replace(grouped, before=of_part.before @ axes, after=None if of_part.after is None else of_part.after @ axes)


def _grouped(
    snapshot: Snapshot, model: SimilarityModel, model_id: str | None, songs: Sequence[int | Example], sample: list[int]
) -> Compared:
    """What one model compares of two songs, a query the first of them, beside some of the library.

    Raises NotFoundError if features of one of them are not kept.
    """
    known = sample + [song for song in songs if isinstance(song, int)]
    found = dict(zip(known, _rows(snapshot, model_id, known), strict=True))
    pair = [found[song] if isinstance(song, int) else _features_of(snapshot, song, model) for song in songs]
    rows = [*pair, *(found[song_id] for song_id in sample)]
    features = np.array([row for row in rows if row is not None])
    if len(features) < len(rows):
        raise NotFoundError(
            "songs of this library have not been compared yet: wait until the running job has finished."
        )
    mapped = model.mapped(features)
    is_sound = model.representation == SOUND
    n = mapped.shape[1]
    return Compared(
        names=tuple(GROUPS) if is_sound else (model.kind.description,),
        group=sound_groups(n) if is_sound else np.zeros(n, dtype=np.int64),
        pair=mapped[: len(pair)],
        sample=mapped[len(pair) :],
        before=model.untrained().components_,
        after=None if model.metric_ is None else model.components_,
    )


def _features_of(snapshot: Snapshot, example: Example, model: SimilarityModel) -> Float32Array | None:
    if model is snapshot.model:
        return example.features
    return model.features([example.frames])[0] if model.encoder_.uses_audio else None


def sides_of(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side]:
    """A query and an answer to it, ready to be explained; parameters and errors as of :func:`explained`."""
    if isinstance(query, int):
        first, second = _songs(snapshot, [query, other_id])
        return first, second
    (other,) = _songs(snapshot, [other_id])
    return _outside(snapshot, query), other


def _outside(snapshot: Snapshot, example: Example) -> Side:
    """Sound from outside; what listeners say is known when the library has the same sound."""
    known = next(iter(snapshot.songs_by_id([example.song_id] if example.song_id is not None else [])), None)
    histogram: Float32Array | None = example.features
    if not _compares_codewords(snapshot):
        codewords = _codewords(snapshot)
        histogram = None if codewords is None else codewords.features([example.frames])[0]
    return Side(
        histogram=histogram,
        frame_blocks=example.frames.blocks(),
        peaks=example.peaks,
        duration_s=example.duration_s,
        title=example.name,
        song_id=example.song_id,
        starts_s=example.starts_s,
        tags=_tags(snapshot, known) if known else (),
        listeners=snapshot.library.listening.listeners_of([known.id])[known.id] if known else frozenset(),
    )


def _songs(snapshot: Snapshot, song_ids: list[int]) -> list[Side]:
    shown = [_shown_id(snapshot, song_id) for song_id in song_ids]
    in_use = snapshot.record if _compares_codewords(snapshot) else snapshot.library.models.codewords()
    histograms = [None] * len(shown) if in_use is None else _rows(snapshot, in_use.id, shown)
    listeners = snapshot.library.listening.listeners_of(song_ids)
    sides = []
    songs = snapshot.songs_by_id(song_ids)
    for song, histogram in zip(songs, histograms, strict=True):
        sides.append(
            Side(
                histogram=histogram,
                frame_blocks=_frame_blocks(snapshot.library, song),
                peaks=snapshot.library.outline(song.id),
                duration_s=song.duration_s,
                title=song.title,
                sub=song.by,
                song_id=song.id,
                tags=_tags(snapshot, song),
                listeners=listeners[song.id],
            )
        )
    return sides


def _compares_codewords(snapshot: Snapshot) -> bool:
    return snapshot.model is not None and snapshot.model.representation in CODEWORDS


def _codewords(snapshot: Snapshot) -> SimilarityModel | None:
    """The library's model of codewords, which says what sounds alike where."""
    record = snapshot.library.models.codewords()
    return None if record is None else _loaded(snapshot.library, record.id)


@lru_cache(maxsize=4)
def _loaded(library: Library, model_id: str) -> SimilarityModel:
    return SimilarityModel.load(library.models.path(model_id))


def _shown_id(snapshot: Snapshot, song_id: int) -> int:
    """The song whose features are those of a song: its own, or of a copy that of the song shown."""
    row = int(snapshot.rows_of([song_id])[0])
    if row < 0:
        song = snapshot.library.song(song_id)  # raises when there is no such song at all
        raise NotFoundError(f"{song.label} has not been compared yet: wait until the running job has finished.")
    return int(snapshot.row_ids[row])


def _rows(snapshot: Snapshot, model_id: str | None, song_ids: list[int]) -> list[Float32Array | None]:
    """Features of songs under a model; None where it has none."""
    stored = _features(snapshot.library, model_id, snapshot.revision)
    places = np.flatnonzero(np.isin(stored.song_ids, song_ids))
    place_of = dict(zip(stored.song_ids[places].tolist(), places.tolist(), strict=True))
    return [np.asarray(stored.X[place_of[song_id]]) if song_id in place_of else None for song_id in song_ids]


@lru_cache(maxsize=4)
def _features(library: Library, model_id: str | None, revision: int) -> Vectors:
    """The memory map and its song ids, 8 bytes a song; to list them takes longer than to explain two songs."""
    return library.models.features(model_id)


def _frame_blocks(library: Library, song: Song) -> Iterator[Float32Array] | None:
    try:
        return library.frame_files.blocks(song.content_hash)
    except (FeatureVersionError, AudioTooShortError):  # not kept, or not written by this program
        return None


def _tags(snapshot: Snapshot, song: Song) -> tuple[str, ...]:
    """Tags, heaviest first; without any, the genre."""
    tags = tuple(tag for tag, _ in snapshot.tags_of([song.id]).get(song.id, ()))
    return tags or ((song.genre,) if song.genre else ())
