"""Short reasons why songs are similar, in words that a listener can check by ear.

Reasons are properties that two songs share: first artist, genre and tags, then tempo, key and descriptors ("both
dark"), then parts of the sound ("similar rhythm"), the rarest first. The words for descriptors do not depend on the
library (:mod:`musicsim.explorer.snapshot.sound_words`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from musicsim._arrays import Float32Array
from musicsim.audio import DESCRIPTORS
from musicsim.explorer.search.shared_labels import Tags, find_shared_labels
from musicsim.explorer.search.similar_parts import rank_parts
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.sound_words import CONTRARY, words_of
from musicsim.library import Song

_N_REASONS = 2
IN_COMMON = "in common: "  # a form that is grammatical with every genre and tag
_SIMILAR = "similar "
_TOLERANCE = 0.04  # maximum difference of two tempos that are stated as one, as a share of their mean
_MAX_SIMILAR = 0.1  # a part of the sound is "similar" if at most this share of the library's pairs of songs is nearer
_MAX_ALIKE = 0.25  # the same for the nearest part of songs that have nothing else in common
_OFTEN = 3  # minimum number of shared playlists for "often"
_SAID_BY = {"similar tone color": ("both bright", "both dark"), "similar note starts": ("both lively",)}
"""Shared descriptors that already imply that a part of the sound is similar."""
_SOFT = frozenset(("both quiet", "both calm"))  # the note starts of such songs are too weak for a comparison


@dataclass(slots=True)
class _Facts:
    """Properties that two songs share; the most important of each kind come first."""

    labels: list[str] = field(default_factory=list)  # artist, genre and tags
    sound: list[str] = field(default_factory=list)
    weak: list[str] = field(default_factory=list)  # about the sound, for songs without other facts
    also: list[str] = field(default_factory=list)  # not audible, for songs with too few other facts

    @property
    def strong(self) -> list[str]:
        return [*self.labels, *self.sound]


def describe_pairs(
    snapshot: Snapshot, song: Song | None, others: Sequence[Song], features: Float32Array | None = None
) -> list[str]:
    """Return a reason for each of the other songs: up to two shared properties, or "" if none is known.

    A property that all the others share does not distinguish them, so it is only named if there is nothing else. For
    sound from outside the library, `song` is None, and `features` are its features in the model in use.
    """
    facts = _find_facts(snapshot, song, others, features)
    if song is not None:
        pairs = [(song.id, other.id) for other in others]
        in_need = [pair for pair, each in zip(pairs, facts, strict=True) if len(each.strong) < _N_REASONS]
        n_shared = snapshot.count_shared_playlists(in_need)
        for pair, each in zip(pairs, facts, strict=True):
            _add_playlists(each, n_shared.get(pair, 0))
    strong = [set(each.strong) for each in facts]
    shared = set.intersection(*strong) if len(facts) > _N_REASONS else set()
    return [_join(_choose(each, shared)) for each in facts]


def describe_step(
    snapshot: Snapshot,
    song: Song,
    other: Song,
    *,
    tags: Collection[str] = (),
    first: Iterable[str] = (),
    also: Iterable[str] = (),
    n_shared: int = 0,
) -> str:
    """Return a reason why a song follows another, "" if none is known.

    The `tags` are preferred to other tags that both songs have. The reason begins with the facts in `first`. The facts
    in `also` cannot be heard, so they fill the reason only if there are too few other facts; so does `n_shared`, the
    number of playlists with both songs.
    """
    (facts,) = _find_facts(snapshot, song, [other], preferred=tags)
    _add_playlists(facts, n_shared)
    facts.labels = [*first, *facts.labels]
    facts.also += also
    return _join(_choose(facts))


def describe_sound(snapshot: Snapshot, song: Song, other: Song) -> str:
    """Return up to two properties that the sounds of two songs share, "" if none is known."""
    (facts,) = _find_facts(snapshot, song, [other])
    return _join(_choose(_Facts(sound=facts.sound, weak=facts.weak)))


def _choose(facts: _Facts, shared: Collection[str] = ()) -> list[str]:
    """Choose two different facts, those in `shared` last; the second fact is about the sound if possible."""
    strong = sorted(facts.strong, key=shared.__contains__) or facts.weak
    others = [fact for fact in strong[1:] if strong[0] not in _SAID_BY.get(fact, ())]
    sound = [fact for fact in others if fact in facts.sound]
    return list(dict.fromkeys([*strong[:1], *sound, *others, *facts.also]))[:_N_REASONS]


def _join(facts: Sequence[str]) -> str:
    """Join facts, and shorten two of the same form, as in "both dark and calm"."""
    text = " · ".join(facts)
    if all(fact.startswith(IN_COMMON) for fact in facts):
        return text.replace(f" · {IN_COMMON}", ", ")
    if all(fact.removeprefix("both ") in CONTRARY for fact in facts):
        return text.replace(" · both ", " and ")
    return text


def _find_facts(
    snapshot: Snapshot,
    song: Song | None,
    others: Sequence[Song],
    features: Float32Array | None = None,
    preferred: Collection[str] = (),
) -> list[_Facts]:
    """Return the facts about a song and each of the others; `preferred` are tags to name first."""
    ranks = rank_parts(snapshot, song, others, features)
    if song is None:
        return [_Facts(sound=_name_similar(shares), weak=_name_nearest(shares)) for shares in ranks]
    tags = snapshot.tags_of([song.id, *(other.id for other in others)])
    facts = [_Facts(_compare_labels(snapshot, tags, song, other, preferred)) for other in others]
    for each, other, shares in zip(facts, others, ranks, strict=True):
        each.sound = _compare_descriptors(song, other)
        if not _SOFT.isdisjoint(each.strong):
            shares.pop("note starts", None)
        each.sound += _name_similar(shares)
        each.weak = _name_nearest(shares)
        if song.mode and song.mode == other.mode:
            each.weak.append(f"both in a {song.mode} key")
    return facts


def _compare_labels(snapshot: Snapshot, tags: Tags, song: Song, other: Song, preferred: Collection[str]) -> list[str]:
    """Return the artist, genre and tags that two songs share, without contradictions to each other and descriptors."""
    heard = words_of(song) | words_of(other)
    fitting: list[str] = []
    for label in find_shared_labels(snapshot, tags, song, other, preferred):
        if CONTRARY.get(label, frozenset[str]()).isdisjoint(heard.union(fitting)):
            fitting.append(label)
    artist = ["same artist"] if song.artist and song.artist == other.artist else []
    return artist + [f"both {label}" if label in CONTRARY else f"{IN_COMMON}{label}" for label in fitting]


def _compare_descriptors(song: Song, other: Song) -> list[str]:
    """Return the descriptors that two songs share; fewest pairs of songs share a tempo, then a key."""
    words = words_of(song) & words_of(other)
    facts = []
    if tempo := _find_shared_tempo(song, other):
        words -= {*DESCRIPTORS["tempo"].words}  # less precise
        facts.append(f"both around {tempo} beats/min")
    if song.key and (song.key, song.mode) == (other.key, other.mode):
        facts.append(f"both in {song.key} {song.mode}")
    return facts + [f"both {word}" for word in sorted(words)]


def _find_shared_tempo(song: Song, other: Song) -> int | None:
    """Return the rounded mean of two tempos, None if they differ by more than listeners would accept."""
    if not song.tempo or not other.tempo:
        return None
    mean = (song.tempo + other.tempo) / 2
    return round(mean) if abs(song.tempo - other.tempo) <= _TOLERANCE * mean else None


def _name_similar(shares: Mapping[str, float]) -> list[str]:
    """Return the parts of the sound in which two songs are similar, the rarest first."""
    ranked = sorted((share, name) for name, share in shares.items() if share <= _MAX_SIMILAR)
    return [f"{_SIMILAR}{name}" for _, name in ranked]


def _name_nearest(shares: Mapping[str, float]) -> list[str]:
    """Return the part of the sound in which two songs differ least, unless they differ as much as most pairs."""
    name = min(shares, key=shares.__getitem__, default="")
    return [f"closest in {name}"] if name and shares[name] <= _MAX_ALIKE else []


def _add_playlists(facts: _Facts, n_shared: int) -> None:
    """Add that two songs are in `n_shared` of the same playlists, if they have too few other facts."""
    if len(facts.strong) >= _N_REASONS:
        return
    if n_shared >= _OFTEN:
        facts.also.append("often in the same playlists")
    elif n_shared and not facts.strong:
        facts.also.append("in the same playlist")
