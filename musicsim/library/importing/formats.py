"""The record of a format that listening is imported from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from musicsim.library.importing.records import Gatherer, Kind
from musicsim.library.importing.sources import JsonStream, RawBytes, TextLines


@dataclass(frozen=True, slots=True)
class Format:
    """A format of files."""

    label: str  # its name for people
    kind: Kind
    read: Callable[[Any, Gatherer], None]  # called with an object of `source`
    source: type[TextLines | JsonStream | RawBytes] = TextLines
    is_lenient: bool = False  # if paths are bytes, and the format reads those that are not UTF-8
    signs: tuple[str, ...] = ()  # texts that only the beginnings of its files have, all of them
