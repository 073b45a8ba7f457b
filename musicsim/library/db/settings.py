"""Settings of a library: defaults, checks, and the settings that belong to the machine."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from musicsim._checks import check_choice
from musicsim.registry import load_each

INDEX_KINDS = ("automatic", "partition", "exact")
"""Kinds of neighbor index; ``automatic`` depends on the number of songs."""

# of version 1.0, whose libraries and backups may contain them
_FORMER_INDEX_KINDS = frozenset({"forest", "tree", "codes"})
_FORMER_SETTINGS = frozenset({"index_memory_mb"})

_DEFAULTS: dict[str, Any] = {
    "keep_frames": True,  # store MFCC frames on disk, so that models can be refitted without decoding
    "aspects": True,  # also compute harmony and rhythm; takes about a tenth of the analysis time
    "shortest_s": 20.0,  # shorter files are skipped
    "n_workers": 0,  # worker processes for a scan; 0: one per core
    "file_memory_mb": 1024,  # a decoder that uses more is stopped
    "file_seconds": 600,  # a decoder that takes longer is stopped
    "index_kind": "automatic",  # kind of neighbor index, one of INDEX_KINDS
    "learned_ear": True,  # the app describes songs with a learned ear in the background, if it is installed
    "keep_plays": True,  # store plays and skips from the app's player
    "hub_reduction": True,  # keep hubs from crowding every list of results
}

_OF_MACHINE = frozenset({"n_workers", "file_memory_mb", "file_seconds"})


@cache
def _extension_checks() -> dict[str, Callable[[str], str]]:
    return {
        name: check for settings in load_each(lambda extension: extension.settings) for name, check in settings.items()
    }


def default_settings() -> dict[str, Any]:
    return _DEFAULTS | dict.fromkeys(_extension_checks(), "")


def is_of_machine(name: str) -> bool:
    """Return whether a setting belongs to the machine, so that it is not restored from a backup."""
    return name in _OF_MACHINE or name in _extension_checks()


def check_setting(name: str, value: Any) -> Any:
    """Return the value to store; raise ValueError if the name is unknown or the value's type or range is wrong."""
    if name in _extension_checks():
        return value and _extension_checks()[name](str(value))
    if name not in _DEFAULTS:
        raise ValueError(f"{name!r} is not a setting: choose from {', '.join(default_settings())}.")
    if name == "index_kind":
        check_choice(name, value, INDEX_KINDS)
    elif isinstance(_DEFAULTS[name], bool):
        if not isinstance(value, bool):
            raise ValueError(f"{name}={value!r} must be true or false.")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r} must be a finite number of at least 0.")
    return value


def read_settings(text: str | None) -> dict[str, Any]:
    """Return the settings stored as JSON, except unknown names. Raises ValueError if the JSON or a value is invalid."""
    return {
        name: check_setting(name, value) for name, value in parse_settings(text).items() if name in default_settings()
    }


def parse_settings(text: str | None) -> dict[str, Any]:
    """Return the settings stored as JSON, translated from earlier versions; raise ValueError for invalid JSON."""
    settings = json.loads(text or "{}")
    if not isinstance(settings, dict):
        raise ValueError("its settings are not a JSON object")
    if settings.get("index_kind") in _FORMER_INDEX_KINDS:
        settings["index_kind"] = "automatic"
    return {name: value for name, value in settings.items() if name not in _FORMER_SETTINGS}


def merge_restored(restored: str | None, own: str | None) -> str | None:
    """Return a backup's settings as JSON, with machine settings from `own`, the JSON of the replaced library."""
    # dropped before the check, so that an invalid value from the other machine does not matter
    settings = read_settings(json.dumps({k: v for k, v in parse_settings(restored).items() if not is_of_machine(k)}))
    with suppress(ValueError):
        settings |= {name: value for name, value in read_settings(own).items() if is_of_machine(name)}
    return json.dumps(settings) if settings else None
