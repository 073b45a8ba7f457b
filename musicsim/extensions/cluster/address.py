"""Addresses of Dask clusters."""

import ipaddress
import re

_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
# one plain host: of user@host, programs disagree which part is the host
_SCHEDULER = re.compile(r"(?P<protocol>tcp|tls|ws|wss)://(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[\w.-]+)):\d{1,5}/?")
_ENCRYPTED = ("tls", "wss")


def check_address(address: str) -> str:
    """Return the address of a cluster without blanks around it. Raises ValueError if it is malformed."""
    address = address.strip()
    if not (_LOCAL.fullmatch(address) or _SCHEDULER.fullmatch(address)):
        raise ValueError(
            f"cluster={address!r} should be the address of a Dask scheduler, such as tcp://10.0.0.5:8786, or local:4 "
            "for four workers on this machine."
        )
    return address


def is_encrypted(address: str) -> bool:
    """True if the address of a scheduler uses TLS."""
    found = _SCHEDULER.fullmatch(address.strip())
    return found is not None and found["protocol"] in _ENCRYPTED


def is_on_this_machine(address: str) -> bool:
    """True if a cluster runs on this machine only: ``local:N``, ``localhost`` or a loopback address.

    Names are not resolved, as their address can change between the check and the connection.
    """
    if n_own(address):
        return True
    found = _SCHEDULER.fullmatch(address.strip())
    if found is None:
        return False
    host = found["ipv6"] or found["host"]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def n_own(address: str) -> int:
    """Number of workers that a scan starts on this machine; 0 for the address of a scheduler."""
    found = _LOCAL.fullmatch(address.strip())
    return int(found[1]) if found else 0


SETTINGS = {"cluster": check_address}
"""The setting with the address of the cluster of a library; empty for worker processes of this machine."""
