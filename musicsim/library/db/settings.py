"""Settings of a library: their defaults, the values they may have, and which of them belong to the machine.

The hook ``settings`` is a mapping of names to functions ``check(text: str) -> str``, which raise ValueError. Settings
of extensions are texts, empty by default, and belong to the machine.
"""

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from musicsim.hooks import load_hooks

INDEX_KINDS = ("automatic", "partition", "forest", "tree", "codes", "exact")
"""Kinds of neighbor index; ``automatic`` depends on the number of songs and on `index_memory_mb`."""

_DEFAULTS: dict[str, Any] = {
    "keep_frames": True,  # keep MFCC frames on the disk: models are fitted again without decoding
    "aspects": True,  # compute harmony and rhythm as well as timbre, for about a tenth of the time
    "shortest_s": 20.0,  # shorter files are skipped
    "n_workers": 0,  # worker processes of a scan; 0: one per core
    "file_memory_mb": 1024,  # a decoder that takes more is stopped
    "file_seconds": 600,  # a decoder that takes longer is stopped
    "index_memory_mb": 4096,  # memory of a large library's index; above it, bit codes are searched
    "index_kind": "automatic",  # kind of neighbor index, one of INDEX_KINDS
    "hub_reduction": True,  # songs that are near everything do not crowd every list of results
}

_OF_MACHINE = frozenset({"n_workers", "file_memory_mb", "file_seconds", "index_memory_mb"})


@cache
def _checks() -> dict[str, Callable[[str], str]]:
    """Checks of the settings of extensions, by name."""
    return {name: check for settings in load_hooks("settings") for name, check in settings.items()}


def default_settings() -> dict[str, Any]:
    """All settings with their defaults."""
    return _DEFAULTS | dict.fromkeys(_checks(), "")


def is_of_machine(name: str) -> bool:
    """True for a setting that suits one machine. A restored library keeps those of the machine it is restored on."""
    return name in _OF_MACHINE or name in _checks()


def check_setting(name: str, value: Any) -> Any:
    """The value to store for a setting.

    Raises ValueError if no setting has this name, or the value has another type or is out of range.
    """
    if name in _checks():
        return value and _checks()[name](str(value))
    if name not in _DEFAULTS:
        raise ValueError(f"{name!r} is not a setting: choose from {', '.join(default_settings())}.")
    if name == "index_kind":
        if value not in INDEX_KINDS:
            raise ValueError(f"{name}={value!r} should be one of {', '.join(INDEX_KINDS)}.")
        return value
    if isinstance(_DEFAULTS[name], bool):
        if not isinstance(value, bool):
            raise ValueError(f"{name}={value!r} should be true or false.")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name}={value!r} should be a number, not negative.")
    return value


def read_settings(text: str | None) -> dict[str, Any]:
    """Changed settings, from the JSON that the database holds; names that this version does not know are left out.

    Raises ValueError if it is not a JSON object, or a value is wrong.
    """
    stored = json.loads(text or "{}")
    if not isinstance(stored, dict):
        raise ValueError("its settings are not a JSON object")
    return {name: check_setting(name, value) for name, value in stored.items() if name in default_settings()}


def merge_restored(restored: str | None, own: str | None) -> str | None:
    """Settings for a restored library, as JSON: its own for the music, and those of this machine.

    `restored` are those of the backup, `own` those of the library that is replaced, if any.
    Raises ValueError if `restored` is damaged. A damaged `own` counts as none.
    """
    # an address, or a wrong limit, must not matter: this machine's value is used anyway
    stored = json.loads(restored or "{}")
    if not isinstance(stored, dict):
        raise ValueError("its settings are not a JSON object")
    shared = {name: value for name, value in stored.items() if not is_of_machine(name)}
    kept = read_settings(json.dumps(shared))
    try:
        here = read_settings(own)
    except ValueError:
        here = {}
    kept |= {name: value for name, value in here.items() if is_of_machine(name)}
    return json.dumps(kept) if kept else None
