"""Clusters that the owner of this machine trusts, stored for the user and never in a library.

A library's settings name a cluster. They may have been written by somebody else, so they cannot say that it is
trusted. Trust belongs to an address and is stored in the user's configuration folder.
"""

import json
import os
from pathlib import Path

from musicsim import CLUSTER_VARIABLE
from musicsim.extensions.cluster.addresses import is_encrypted, is_on_this_machine
from musicsim.library.disk.arrays import private_path
from musicsim.library.processes.pools import check_address

TRUST_VARIABLE = "MUSICSIM_TRUST_CLUSTER"
"""Trusts the address in MUSICSIM_CLUSTER, and no other, if it is 1."""


def needs_trust(address: str) -> bool:
    """True for a cluster on another machine without TLS, which is used only if its address is trusted."""
    return bool(address) and not (is_on_this_machine(address) or is_encrypted(address))


def is_trusted(address: str) -> bool:
    """True if the owner of this machine trusts the cluster at an address."""
    named = os.environ.get(CLUSTER_VARIABLE, "").strip()
    if os.environ.get(TRUST_VARIABLE) == "1" and address == named:
        return True
    return address in _read_trusted()


def trust(address: str, *, is_trusted: bool = True) -> None:
    """Remember on this machine that a cluster is trusted, or is not trusted any more.

    Raises ValueError if `address` is malformed; StorageError if it cannot be stored.
    """
    address = check_address(address)
    addresses = _read_trusted() - {address}
    if is_trusted:
        addresses |= {address}
    file = _trust_file()
    with private_path(file) as temporary:
        temporary.write_text(json.dumps({"format": 1, "addresses": sorted(addresses)}), encoding="utf-8")


def _read_trusted() -> set[str]:
    """Trusted addresses; none if the file is missing or damaged."""
    try:
        stored = json.loads(_trust_file().read_text(encoding="utf-8"))
        return {address for address in stored["addresses"] if isinstance(address, str)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _trust_file() -> Path:
    """The file, in the user's configuration folder as the XDG Base Directory Specification defines it."""
    configuration = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(configuration) / "musicsim" / "trusted_clusters.json"
