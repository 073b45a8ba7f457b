"""Words for the tempo, loudness, brightness and energy of a song, on scales that are the same in every library.

Only songs near an end of a scale get a word, so a word stays true when the library grows. The words of a search differ:
there, *slow* means the slowest third of the library (:mod:`musicsim.explorer.snapshot.words`). The page
``docs/research/descriptors.md`` states where the scales come from.
"""

from collections.abc import Mapping

import numpy as np

from musicsim.explorer.requests.filters import HEARD_WORDS
from musicsim.library import Song

ENDS: Mapping[str, tuple[float, float]] = {
    "tempo": (90.0, 150.0),  # beats per minute
    "loudness": (-23.0, -12.0),  # LUFS
    "brightness": (1400.0, 2700.0),  # Hz
    "energy": (75.0, 125.0),  # dB per second
}
"""Largest value that gets the lower word, such as "slow", and smallest value that gets the upper word."""

COMPARATIVES = {
    "fast": "faster", "slow": "slower", "loud": "louder", "quiet": "quieter", "bright": "brighter", "dark": "darker",
    "lively": "livelier", "calm": "calmer",
}  # fmt: skip
# Energy does not depend on loudness: dense, loud music rises little, but nobody calls it calm.
_UNFIT = {"lively": frozenset(("quiet", "slow")), "calm": frozenset(("loud", "fast"))}


def _find_contrary() -> dict[str, frozenset[str]]:
    pairs = {frozenset(pair) for pair in HEARD_WORDS.values()}
    pairs |= {frozenset((word, other)) for word, others in _UNFIT.items() for other in others}
    words = sorted(frozenset[str]().union(*pairs))
    return {word: frozenset[str]().union(*(pair for pair in pairs if word in pair)) - {word} for word in words}


CONTRARY = _find_contrary()
"""The words that contradict each word; nothing is called both."""


def word_for(name: str, value: float | None) -> str:
    """Return the word for a value of a descriptor; "" between the ends of its scale, and for unknown values."""
    (low, high), (upper, lower) = ENDS[name], HEARD_WORDS[name]
    if value is None or np.isnan(value):
        return ""
    return upper if value >= high else lower if value <= low else ""


def words_of(song: Song) -> frozenset[str]:
    """Return the words for a song's descriptors, without contradictions."""
    words = {word for name in HEARD_WORDS if (word := word_for(name, getattr(song, name)))}
    return frozenset(word for word in words if words.isdisjoint(_UNFIT.get(word, ())))


def compare(name: str, mean: float, difference: float) -> str:
    """Return the word for songs whose mean differs from that of the library; a comparative if it is not at an end."""
    word = HEARD_WORDS[name][0 if difference > 0 else 1]
    return word if word_for(name, mean) == word else COMPARATIVES[word]
