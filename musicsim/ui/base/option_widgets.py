"""Widget arguments for the options of a request: label, help, limits and default."""

from dataclasses import replace
from functools import partial
from typing import Any

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.explorer import options_of
from musicsim.ui.base.keys import Key

_COMMON = ("mp3", "flac", "m4a", "ogg", "wav", "opus")
UPLOAD_TYPES = [*_COMMON, *sorted({extension.lstrip(".") for extension in AUDIO_EXTENSIONS} - set(_COMMON))]
"""File extensions for upload boxes. Common ones come first because a box shows only the first few."""


def describe_option(request: type, field: str) -> dict[str, Any]:
    """Return the label and help of an option."""
    option = options_of(request)[field]
    return {"label": option.label, "help": option.help}


def option_limits(request: type, field: str, max_value: int | None = None) -> dict[str, Any]:
    """Return the label, help, minimum and maximum of an option; `max_value` replaces the maximum."""
    low, high = options_of(request)[field].limits
    return describe_option(request, field) | {"min_value": low, "max_value": max_value or high}


def option_key(name: str, request: type, field: str, *, per_library: bool = False) -> Key[Any]:
    """Return the session entry for an option, with its default; an option with several values is a list."""
    option = options_of(request)[field]
    return Key(name, lambda: option.default_given, option.help, per_library, is_kept=True)


def option_keys(prefix: str, request: type, **defaults: Any) -> dict[str, Key[Any]]:
    """Return the session entry of each option of a request; `defaults` replaces the defaults of some options."""
    keys = {field: option_key(f"{prefix}_{field}", request, field) for field in options_of(request)}
    return keys | {field: replace(keys[field], default=partial(defaults.get, field)) for field in defaults}
