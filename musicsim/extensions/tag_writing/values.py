"""The values of the file tags: from descriptors, the map, and the measured loudness."""

from collections.abc import Collection
from pathlib import Path

from musicsim.audio import DESCRIPTORS
from musicsim.explorer import Snapshot, regions_of, words_of
from musicsim.extensions.tag_writing.formats import Values, format_gain, parse_gain
from musicsim.extensions.tag_writing.loudness import measure_loudness
from musicsim.library import Song

_REFERENCE = -18.0  # LUFS, ReplayGain 2.0
_MOODS = (*DESCRIPTORS["brightness"].words, *DESCRIPTORS["energy"].words)  # the words that describe a mood
_TOLERANCE = 0.015  # dB; Opus stores steps of 1/256 dB
MEASURED: Values = ()
"""Placeholder of a value that is measured while the file is written."""


class NewValues:
    """The values of the chosen properties for the songs of a snapshot."""

    def __init__(self, snapshot: Snapshot, properties: Collection[str]) -> None:
        self._properties = frozenset(properties)
        self._rows = {int(song_id): row for row, song_id in enumerate(snapshot.row_ids.tolist())}
        coarsest = min(snapshot.clusters, key=int, default=None) if "region" in self._properties else None
        self._clusters = None if coarsest is None else snapshot.clusters[coarsest]
        self._regions = {} if coarsest is None else {region.cluster: region.name for region in regions_of(snapshot)[0]}

    def read(self, song: Song) -> dict[str, Values]:
        """Return the known values of a song, keyed by tag. The gain and the peak are measured later."""
        row = self._rows.get(song.id)
        values: dict[str, Values] = {}
        if "tempo" in self._properties and song.tempo is not None:
            values["tempo"] = (f"{song.tempo:.0f}",)
        if "key" in self._properties and song.key is not None:
            values["key"] = (song.key + "m" * (song.mode == "minor"),)
        if "replaygain" in self._properties:
            values |= {"gain": MEASURED, "peak": MEASURED}
        if row is None:
            return values
        if self._clusters is not None and (name := self._regions.get(int(self._clusters[row]))):
            values["region"] = (name,)
        if "mood" in self._properties and (moods := words_of(song).intersection(_MOODS)):
            values["mood"] = tuple(sorted(moods, key=_MOODS.index))
        return values


def measure(path: Path) -> dict[str, Values]:
    """Return the gain and peak of a file; neither if it is silent. Raises AudioDecodeError."""
    loudness = measure_loudness(path)
    if loudness is None:
        return {}
    return {"gain": (format_gain(_REFERENCE - loudness.lufs),), "peak": (f"{loudness.peak:.6f}",)}


def is_same(tag: str, old: Values, new: Values) -> bool:
    """Return whether two values say the same, such as “120.00” and “120” beats per minute."""
    if tag in ("tempo", "gain", "peak") and len(old) == len(new) == 1:
        numbers = [parse_gain(values[0]) for values in (old, new)]
        if None not in numbers:
            a, b = (float(number) for number in numbers if number is not None)
            return round(a) == round(b) if tag == "tempo" else abs(a - b) < _TOLERANCE
    return [value.casefold() for value in old] == [value.casefold() for value in new]


def describe_values(values: Values) -> str:
    return ", ".join(values) if values else "measured when written"
