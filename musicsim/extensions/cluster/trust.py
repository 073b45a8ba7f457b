"""Clusters that the owner of this machine trusts.

Another person may have written a library's settings, which contain the address of a cluster. So trust is never stored
in a library, but per address in the user's configuration folder.
"""

import json
import os
from pathlib import Path

from musicsim.extensions.cluster.address import check_address, is_encrypted, is_on_this_machine
from musicsim.library.disk.arrays import private_path

CLUSTER_VARIABLE = "MUSICSIM_CLUSTER"  # environment variable with the address of a cluster
TRUST_VARIABLE = "MUSICSIM_TRUST_CLUSTER"
"""If this environment variable is 1, only the address in MUSICSIM_CLUSTER is trusted."""


def needs_trust(address: str) -> bool:
    """Return whether a cluster is on another machine without TLS, so that it must be trusted to be used."""
    return bool(address) and not (is_on_this_machine(address) or is_encrypted(address))


def is_trusted(address: str) -> bool:
    """Return whether the owner of this machine trusts the cluster at an address."""
    if os.environ.get(TRUST_VARIABLE) == "1" and address == os.environ.get(CLUSTER_VARIABLE, "").strip():
        return True
    return address in _read_trusted()


def trust(address: str, *, is_trusted: bool = True) -> None:
    """Store on this machine that a cluster is trusted, or no longer. Raises ValueError if `address` is malformed."""
    address = check_address(address)
    addresses = _read_trusted() - {address}
    if is_trusted:
        addresses |= {address}
    with private_path(_trust_file()) as temporary:
        temporary.write_text(json.dumps({"format": 1, "addresses": sorted(addresses)}), encoding="utf-8")


def _read_trusted() -> set[str]:
    """Return the trusted addresses; none if the file is missing or damaged."""
    try:
        stored = json.loads(_trust_file().read_text(encoding="utf-8"))
        return {address for address in stored["addresses"] if isinstance(address, str)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _trust_file() -> Path:
    configuration = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(configuration) / "musicsim" / "trusted_clusters.json"
