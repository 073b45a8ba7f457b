"""Settings of a library: their defaults, the values they may have, and which of them belong to the machine."""

import json
import math
from typing import Any

from musicsim.library.processes.pools import check_address

INDEX_KINDS = ("automatic", "partition", "forest", "tree", "codes", "exact")
"""Kinds of neighbor index; ``automatic`` depends on the number of songs and on `index_memory_mb`."""

DEFAULTS: dict[str, Any] = {
    "keep_frames": True,  # keep MFCC frames on the disk: models are fitted again without decoding
    "aspects": True,  # compute harmony and rhythm as well as timbre, for about a tenth of the time
    "shortest_s": 20.0,  # shorter files are skipped
    "n_workers": 0,  # worker processes of a scan; 0: one per core
    "cluster": "",  # address of a Dask cluster that scans instead, as in musicsim.library.processes.pools
    "file_memory_mb": 1024,  # a decoder that takes more is stopped
    "file_seconds": 600,  # a decoder that takes longer is stopped
    "index_memory_mb": 4096,  # memory of a large library's index; above it, bit codes are searched
    "index_kind": "automatic",  # kind of neighbor index, one of INDEX_KINDS
    "hub_reduction": True,  # songs that are near everything do not crowd every list of results
}

OF_MACHINE = frozenset({"cluster", "n_workers", "file_memory_mb", "file_seconds", "index_memory_mb"})
"""Settings that suit one machine. A restored library keeps those of the machine it is restored on."""

OF_SNAPSHOT = frozenset({"hub_reduction", "index_kind", "index_memory_mb"})
"""The only settings that a snapshot file holds."""


def check_setting(name: str, value: Any) -> Any:
    """The value to store for a setting.

    Raises ValueError if no setting has this name, or the value has another type or is out of range.
    """
    if name not in DEFAULTS:
        raise ValueError(f"{name!r} is not a setting: choose from {', '.join(DEFAULTS)}.")
    if name == "index_kind":
        if value not in INDEX_KINDS:
            raise ValueError(f"{name}={value!r} should be one of {', '.join(INDEX_KINDS)}.")
        return value
    if isinstance(DEFAULTS[name], str):
        return value and check_address(str(value))
    if isinstance(DEFAULTS[name], bool):
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
    return {name: check_setting(name, value) for name, value in stored.items() if name in DEFAULTS}


def merge_restored(restored: str | None, own: str | None) -> str | None:
    """Settings for a restored library, as JSON: its own for the music, and those of this machine.

    Parameters
    ----------
    restored : str or None
        Settings that the backup holds.
    own : str or None
        Settings of the library that is replaced; None if there is none.

    Raises
    ------
    ValueError
        If `restored` is damaged. A damaged `own` counts as none.
    """
    # an address, or a wrong limit, must not matter: this machine's value is used anyway
    stored = json.loads(restored or "{}")
    if not isinstance(stored, dict):
        raise ValueError("its settings are not a JSON object")
    shared = {name: value for name, value in stored.items() if name not in OF_MACHINE}
    kept = read_settings(json.dumps(shared))
    try:
        here = read_settings(own)
    except ValueError:
        here = {}
    kept |= {name: value for name, value in here.items() if name in OF_MACHINE}
    return json.dumps(kept) if kept else None
