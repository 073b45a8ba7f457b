"""Short reasons why songs are similar, in words that a listener can check by ear.

Reasons are properties that two songs share: first artist, tags and genre, then tempo, key and descriptors ("both
dark"), then parts of the sound ("similar rhythm"). Descriptors and parts of the sound are sorted from rare to common.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, Float64Array
from musicsim.explorer.requests.filters import HEARD_WORDS
from musicsim.explorer.search.why_groups import GROUPS, N_SOUND_FEATURES, sound_groups
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.genres import genre_key
from musicsim.library.stores.models import Vectors
from musicsim.places import places_in_order

_N_REASONS = 2
_TAGS_COMPARED = 8  # number of tags to compare per song, heaviest first
_SAME_TEMPO = 1.04  # largest ratio of two tempos that count as equal; listeners and estimates are not more precise
_OUTER = 1 / 3  # share of the library that counts as dark; the same share counts as bright
_SIMILAR = 0.25  # a part of the sound is "similar" if at most this share of the library is nearer
_SAMPLE = 300  # number of songs that represent the library
_PARTS = {
    "tone color": "similar tone color",
    "how much the loudness varies": "similar dynamics",
    "attacks and swells": "similar punch",
    "rhythm and fluctuation": "similar rhythm",
}
"""Reasons for some of :data:`GROUPS`; the other groups are hard to hear."""
_SAID_BY = {"similar tone color": ("both bright", "both dark"), "similar punch": ("both lively", "both calm")}
"""Shared descriptors that already imply that a part of the sound is similar."""
_SLOW, _FAST = 100.0, 130.0  # maximum tempo that is called slow, and minimum tempo that is called fast


def describe_pairs(
    snapshot: Snapshot, song: Song | None, others: Sequence[Song], features: Float32Array | None = None
) -> list[str]:
    """Return a reason for each of the other songs: up to two shared properties, or "" if none is known.

    A property that all the others share does not distinguish them, so it is only named if there is nothing else. For
    sound from outside the library, `song` is None, and `features` are its features in the model in use.
    """
    facts = [[words for _, words in sorted(parts)] for parts in _find_similar_parts(snapshot, song, others, features)]
    if song is not None:
        tags = snapshot.tags_of([song.id, *(other.id for other in others)])
        facts = [
            [*_compare_tags(tags, song, other), *_compare_descriptors(snapshot, song, other), *parts]
            for other, parts in zip(others, facts, strict=True)
        ]
    shared = set.intersection(*map(set, facts)) if len(facts) > _N_REASONS else set()
    facts = [sorted(each, key=shared.__contains__) for each in facts]  # shared facts come last
    return [" · ".join(_choose(each)) for each in facts]


def _choose(facts: Sequence[str]) -> list[str]:
    """Choose two different facts; the second is about the sound if possible."""
    others = [fact for fact in facts[1:] if facts[0] not in _SAID_BY.get(fact, ())]
    parts = [fact for fact in others if fact in _PARTS.values()]
    return list(dict.fromkeys([*facts[:1], *parts[:1], *others]))[:_N_REASONS]


def _compare_tags(tags: Mapping[int, Sequence[tuple[str, float]]], song: Song, other: Song) -> list[str]:
    facts = ["same artist"] if song.artist and song.artist == other.artist else []
    other_tags = {tag for tag, _ in tags.get(other.id, ())[:_TAGS_COMPARED]}
    facts += [f"both {tag}" for tag, _ in tags.get(song.id, ())[:_TAGS_COMPARED] if tag in other_tags]
    is_same_genre = song.genre and other.genre and genre_key(song.genre) == genre_key(other.genre)
    if song.genre and is_same_genre and f"both {song.genre.lower()}" not in facts:
        facts.append(f"both {song.genre}")
    return facts


def _compare_descriptors(snapshot: Snapshot, song: Song, other: Song) -> list[str]:
    """Return the descriptors that two songs share, sorted from rare to common."""
    facts: list[tuple[float, str]] = []
    bounds = _find_bounds(snapshot)
    is_loud = any((one.loudness or -np.inf) >= bounds.get("loudness", (0.0, np.inf))[1] for one in (song, other))
    for name, (low, high) in bounds.items():
        value, compared = getattr(song, name), getattr(other, name)
        if value is None or compared is None:
            continue
        if name == "tempo" and max(value, compared) <= _SAME_TEMPO * min(value, compared):
            values = snapshot.columns.tempo
            near = np.count_nonzero((values >= value / _SAME_TEMPO) & (values <= value * _SAME_TEMPO))
            facts.append((near / len(values), f"both about {value:.0f} beats/min"))
        elif min(value, compared) >= high or (max(value, compared) <= low and not (name == "energy" and is_loud)):
            # dense, loud music has little energy, but is not calm
            facts.append((_OUTER, f"both {HEARD_WORDS[name][0 if value >= high else 1]}"))
    if song.key and (song.key, song.mode) == (other.key, other.mode):
        facts.append((_OUTER / 2, f"both in {song.key} {song.mode}"))
    return [words for _, words in sorted(facts)]


@lru_cache(maxsize=4)
def _find_bounds(snapshot: Snapshot) -> dict[str, tuple[float, float]]:
    """Return the values that bound the lower and the upper third of the songs, for each known descriptor."""
    bounds = {}
    for name in HEARD_WORDS:
        values = getattr(snapshot.columns, name)
        values = values[np.isfinite(values)]
        if len(values):
            low, high = np.quantile(values, [_OUTER, 1 - _OUTER])
            bounds[name] = float(low), float(high)
    if "tempo" in bounds:
        bounds["tempo"] = min(bounds["tempo"][0], _SLOW), max(bounds["tempo"][1], _FAST)
    return bounds


def _find_similar_parts(
    snapshot: Snapshot, song: Song | None, others: Sequence[Song], features: Float32Array | None
) -> list[list[tuple[float, str]]]:
    """Return the similar parts of the sound per song, each with the share of the library that is nearer."""
    sound = _find_sound(snapshot)
    one = features if features is not None and len(features) == N_SOUND_FEATURES else None
    if one is None and sound is not None and song is not None:
        one = sound.rows([song.id])[0]
    if sound is None or one is None or not others:
        return [[] for _ in others]
    rows = sound.rows([other.id for other in others])
    names = [_PARTS[name] for name in GROUPS if name in _PARTS]
    shares = sound.shares(one, np.array([one if row is None else row for row in rows])).tolist()
    return [
        [(share, name) for share, name in zip(each, names, strict=True) if row is not None and share <= _SIMILAR]
        for row, each in zip(rows, shares, strict=True)
    ]


class _Sound:
    """Features of the model Sound in audible groups, for all songs and for a sample of the library."""

    def __init__(self, stored: Vectors) -> None:
        self._X, self._order = stored.X, np.argsort(stored.song_ids)
        self._ids = stored.song_ids[self._order]
        group = sound_groups(self._X.shape[1])
        columns = [np.flatnonzero(group == i) for i, name in enumerate(GROUPS) if name in _PARTS]
        self._columns, self._starts = np.concatenate(columns), np.cumsum([0, *map(len, columns[:-1])])
        sample = np.random.default_rng(0).permutation(len(self._ids))[:_SAMPLE]
        self._sample = np.asarray(self._X[np.sort(sample)])

    def rows(self, song_ids: Sequence[int]) -> list[Float32Array | None]:
        """Return the features of songs; None for songs without features."""
        places = places_in_order(self._ids, np.array(song_ids, dtype=np.int64), self._order)
        return [np.asarray(self._X[place]) if place >= 0 else None for place in places.tolist()]

    def shares(self, one: Float32Array, others: Float32Array) -> Float64Array:
        """Return the share of the sample that is nearer to a song than each of the others, (n_others, n_groups)."""
        sample, compared = (
            np.add.reduceat(np.square(rows[:, self._columns] - one[self._columns]), self._starts, axis=1)
            for rows in (self._sample, others)
        )
        return (sample[None] < compared[:, None]).mean(axis=1)


def _find_sound(snapshot: Snapshot) -> _Sound | None:
    """Return the features of the built-in model; None before it has been fitted."""
    record = snapshot.library.models.native()
    if record is None or record.n_features != N_SOUND_FEATURES or not snapshot.library.models.is_whole(record):
        return None
    return _read_sound(snapshot.library, record.id, snapshot.n_indexed)


@lru_cache(maxsize=2)
def _read_sound(library: Library, model_id: str, n_songs: int) -> _Sound:
    del n_songs  # part of the cache key, because new songs add features
    return _Sound(library.models.features(model_id))
