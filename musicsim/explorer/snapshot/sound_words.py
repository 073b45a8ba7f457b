"""Words for the descriptors of a song, on scales that are the same in every library.

Only songs near an end of a scale get a word, so a word stays true when the library grows. The words of a search differ:
there, *slow* means the slowest third of the library (:mod:`musicsim.explorer.snapshot.words`). The page
``docs/research/descriptors.md`` states where the scales come from.
"""

import numpy as np

from musicsim.audio import DESCRIPTORS
from musicsim.library import Song

_CLEAR_CHANGE = 0.25  # minimum difference that is named, as a share of the distance between the ends of a scale
# Energy does not depend on loudness: dense, loud music rises little, but nobody calls it calm.
_UNFIT = {"lively": frozenset(("quiet", "slow")), "calm": frozenset(("loud", "fast"))}


def _find_contrary() -> dict[str, frozenset[str]]:
    pairs = {frozenset(descriptor.words) for descriptor in DESCRIPTORS.values()}
    pairs |= {frozenset((word, other)) for word, others in _UNFIT.items() for other in others}
    words = sorted(frozenset[str]().union(*pairs))
    return {word: frozenset[str]().union(*(pair for pair in pairs if word in pair)) - {word} for word in words}


CONTRARY = _find_contrary()
"""The words that contradict each word; nothing is called both."""


def word_for(name: str, value: float | None) -> str:
    """Return the word for a value of a descriptor; "" between the ends of its scale, and for unknown values."""
    (low, high), (upper, lower) = DESCRIPTORS[name].ends, DESCRIPTORS[name].words
    if value is None or np.isnan(value):
        return ""
    return upper if value >= high else lower if value <= low else ""


def words_of(song: Song) -> frozenset[str]:
    """Return the words for a song's descriptors, without contradictions."""
    words = {word for name in DESCRIPTORS if (word := word_for(name, getattr(song, name)))}
    return frozenset(word for word in words if words.isdisjoint(_UNFIT.get(word, ())))


def describe_change(song: Song, other: Song) -> str:
    """Return what changes most between songs that have nothing in common, such as “a change: darker”."""
    changes = {}
    for name, descriptor in DESCRIPTORS.items():
        start, end = getattr(song, name), getattr(other, name)
        if start is not None and end is not None and np.isfinite(end - start):
            low, high = descriptor.ends
            changes[_comparative(name, end - start)] = abs(end - start) / (high - low)
    word = max(changes, key=changes.__getitem__, default="")
    return f"a change: {word}" if word and changes[word] >= _CLEAR_CHANGE else "a change of sound"


def compare(name: str, mean: float, difference: float) -> str:
    """Return the word for songs whose mean differs from that of the library; a comparative if it is not at an end."""
    word = DESCRIPTORS[name].words[0 if difference > 0 else 1]
    return word if word_for(name, mean) == word else _comparative(name, difference)


def _comparative(name: str, difference: float) -> str:
    return DESCRIPTORS[name].comparatives[0 if difference > 0 else 1]
