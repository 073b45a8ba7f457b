"""What widgets say of the options of a request: label, help, limits and default; and which files they take."""

from typing import Any

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.explorer.requests.options import options_of
from musicsim.ui.base.keys import Key

_COMMON = ("mp3", "flac", "m4a", "ogg", "wav", "opus")
UPLOAD_TYPES = [*_COMMON, *sorted({ending.lstrip(".") for ending in AUDIO_EXTENSIONS} - set(_COMMON))]
"""Endings of audio files, those first that people look for: an upload box shows the first few."""


def labelled(request: type, field: str) -> dict[str, Any]:
    """Label and help of an option, as arguments of its widget."""
    option = options_of(request)[field]
    return {"label": option.label, "help": option.help}


def limits(request: type, field: str, max_value: int | None = None) -> dict[str, Any]:
    """The same with the smallest and largest value; the largest may be smaller here."""
    least, most = options_of(request)[field].limits
    return labelled(request, field) | {"min_value": least, "max_value": max_value or most}


def option_key(name: str, request: type, field: str, *, per_library: bool = False) -> Key[Any]:
    """The entry of the session that holds an option, with its default; several values are a list."""
    option = options_of(request)[field]
    return Key(name, lambda: option.default_given, option.help, per_library, is_kept=True)
