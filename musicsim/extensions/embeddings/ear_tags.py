"""Tags that a network predicts for two sounds, checked on the library's own tags."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.extensions.embeddings.networks import Network
from musicsim.library import Library

_MIN_SONGS = 20  # in a smaller library, there is no typical prediction
_MIN_STANDING = 1.0  # standard deviations above the library's mean
_MAX_TAGS = 3
_MIN_TAGGED = 5  # songs with a tag, to check the predictions of this tag
_MAX_CHECKED = 20_000  # songs in a library whose tags are read
_MIN_RIGHT = 0.6


def find_shared_tags(library: Library, key: str, sounds: Sequence[str | Mapping[str, Float32Array]]) -> list[str]:
    """Return the tags that a network predicts more for all of some sounds than for other songs, the clearest first.

    A sound is the hash of a song's file, or vectors keyed by network. If at least five songs in the library have a tag,
    the share of pairs that the network ranks correctly follows the tag. A pair is a song with the tag and one without
    it. Below 60%, the tag is left out. Decades are left out, because they are not audible.
    """
    network = Network(library.folder, key)
    tags = network.about.tags
    rows = network.read_rows()
    if not tags or len(rows.row_of) < _MIN_SONGS:
        return []
    all_scores = _logits(rows.last_columns(len(tags)))
    known = np.isfinite(all_scores).all(axis=1)
    scores = []
    for sound in sounds:
        if isinstance(sound, str):
            scores += [all_scores[rows.row_of[sound]]] if sound in rows.row_of else []
        else:
            scores += [_logits(sound[key][-len(tags) :])] if key in sound else []
    if len(scores) < len(sounds):
        return []
    spread = np.maximum(all_scores[known].std(axis=0), 1e-6)
    standing = (np.min(scores, axis=0) - all_scores[known].mean(axis=0)) / spread
    right = _check(library, key, library.revision) if len(library) <= _MAX_CHECKED else {}
    shared: list[str] = []
    for column in np.argsort(-standing, kind="stable").tolist():
        tag = tags[column]
        if standing[column] < _MIN_STANDING or len(shared) == _MAX_TAGS:
            break
        if not tag.endswith("0s") and right.get(tag, 1.0) >= _MIN_RIGHT:
            shared.append(f"{tag} ({right[tag]:.0%} right on your tags)" if tag in right else tag)
    return shared


@lru_cache(maxsize=2)
def _check(library: Library, key: str, _revision: int) -> dict[str, float]:
    """Return the share of pairs that a network ranks correctly for each of its tags that enough songs have."""
    network = Network(library.folder, key)
    rows = network.read_rows()
    songs = [song for song in library.songs() if song.content_hash in rows.row_of]
    scores = _logits(rows.last_columns(len(network.about.tags)))[[rows.row_of[song.content_hash] for song in songs]]
    words_of = {song_id: {tag.casefold() for tag, _ in tags} for song_id, tags in library.tags().items()}
    words = [words_of.get(song.id, set()) | {(song.genre or "").casefold()} for song in songs]
    is_known = np.isfinite(scores).all(axis=1) & np.array([any(some) for some in words], dtype=bool)
    right = {}
    for column, tag in enumerate(network.about.tags):
        has = np.array([tag in some for some in words], dtype=bool)
        one, other = scores[is_known & has, column], np.sort(scores[is_known & ~has, column])
        if min(len(one), len(other)) >= _MIN_TAGGED:
            below, not_above = (np.searchsorted(other, one, side) for side in ("left", "right"))
            right[tag] = float((below + not_above).mean() / 2 / len(other))
    return right


def _logits(probabilities: Float32Array) -> Float64Array:
    p = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-6, 1 - 1e-6)
    logits: Float64Array = np.log(p / (1 - p))
    return logits
