"""Addresses of Dask clusters, and the clusters that the owner of this machine trusts.

Trust is stored per address in the user's configuration, never in a library, which may come from someone else.
"""

import ipaddress
import json
import os
import re
from pathlib import Path

from musicsim.library import update_private

CLUSTER_VARIABLE = "MUSICSIM_CLUSTER"  # environment variable for the address of a cluster
TRUST_VARIABLE = "MUSICSIM_TRUST_CLUSTER"
"""If this environment variable is 1, only the address in MUSICSIM_CLUSTER is trusted."""
_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
# only a plain host is allowed, because programs disagree on which part of user@host is the host
_SCHEDULER = re.compile(r"(?P<protocol>tcp|tls|ws|wss)://(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[\w.-]+)):\d{1,5}/?")
_ENCRYPTED = ("tls", "wss")


def check_address(address: str) -> str:
    """Return a cluster's address without surrounding spaces. Raises ValueError if the address is malformed."""
    address = address.strip()
    if not (_LOCAL.fullmatch(address) or _SCHEDULER.fullmatch(address)):
        raise ValueError(
            f"cluster={address!r} must be the address of a Dask scheduler, such as tcp://10.0.0.5:8786, or local:4 "
            "for four workers on this machine."
        )
    return address


def is_encrypted(address: str) -> bool:
    match = _SCHEDULER.fullmatch(address.strip())
    return match is not None and match["protocol"] in _ENCRYPTED


def is_on_this_machine(address: str) -> bool:
    """Return True if a cluster runs only on this machine. Host names are not resolved: their addresses can change."""
    if n_own(address):
        return True
    match = _SCHEDULER.fullmatch(address.strip())
    if match is None:
        return False
    host = match["ipv6"] or match["host"]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def n_own(address: str) -> int:
    """Return the number of workers to start on this machine; 0 for the address of a scheduler."""
    match = _LOCAL.fullmatch(address.strip())
    return int(match[1]) if match else 0


SETTINGS = {"cluster": check_address}
"""Setting for the address of a library's cluster. If it is empty, worker processes on this machine are used."""


def needs_trust(address: str) -> bool:
    """Return True if a cluster is on a different machine without TLS, so that it must be trusted before use."""
    return bool(address) and not (is_on_this_machine(address) or is_encrypted(address))


def is_trusted(address: str) -> bool:
    if os.environ.get(TRUST_VARIABLE) == "1" and address == os.environ.get(CLUSTER_VARIABLE, "").strip():
        return True
    return address in _read_trusted()


def trust(address: str, *, is_trusted: bool = True) -> None:
    """Save on this machine whether a cluster is trusted. Raises ValueError if `address` is malformed."""
    address = check_address(address)

    def update(content: bytes | None) -> str:
        known = _parse(content or b"")
        addresses = known | {address} if is_trusted else known - {address}
        return json.dumps({"format": 1, "addresses": sorted(addresses)})

    update_private(_trust_file(), update)


def _read_trusted() -> set[str]:
    try:
        return _parse(_trust_file().read_bytes())
    except OSError:
        return set()


def _parse(content: bytes) -> set[str]:
    try:
        return {address for address in json.loads(content)["addresses"] if isinstance(address, str)}
    except (ValueError, KeyError, TypeError):
        return set()


def _trust_file() -> Path:
    configuration = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(configuration) / "musicsim" / "trusted_clusters.json"
