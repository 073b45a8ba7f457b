"""The description of an import format."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from musicsim.library.importing.records import Gatherer, Kind
from musicsim.library.importing.sources import JsonStream, RawBytes, TextLines


@dataclass(frozen=True, slots=True)
class Format:
    label: str  # for people
    kind: Kind
    read: Callable[[Any, Gatherer], None]  # gets an object of `source`
    source: type[TextLines | JsonStream | RawBytes] = TextLines
    is_lenient: bool = False  # accepts paths that are not UTF-8
    signs: tuple[str, ...] = ()  # texts that are all at the beginning of such files, but not of others
