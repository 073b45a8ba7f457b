"""Addresses of Dask clusters."""

import ipaddress
import re

_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
# a plain host, because programs disagree on which part of user@host is the host
_SCHEDULER = re.compile(r"(?P<protocol>tcp|tls|ws|wss)://(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[\w.-]+)):\d{1,5}/?")
_ENCRYPTED = ("tls", "wss")


def check_address(address: str) -> str:
    """Return the stripped address of a cluster. Raises ValueError if it is malformed."""
    address = address.strip()
    if not (_LOCAL.fullmatch(address) or _SCHEDULER.fullmatch(address)):
        raise ValueError(
            f"cluster={address!r} should be the address of a Dask scheduler, such as tcp://10.0.0.5:8786, or local:4 "
            "for four workers on this machine."
        )
    return address


def is_encrypted(address: str) -> bool:
    """Return whether the address of a scheduler uses TLS."""
    match = _SCHEDULER.fullmatch(address.strip())
    return match is not None and match["protocol"] in _ENCRYPTED


def is_on_this_machine(address: str) -> bool:
    """Return whether a cluster runs on this machine only. Names are not resolved, because their address can change."""
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
"""The setting with the address of a library's cluster; empty for worker processes of this machine."""
