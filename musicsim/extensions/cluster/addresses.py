"""Addresses of clusters, and the state of a cluster."""

import ipaddress
from dataclasses import dataclass

from musicsim.library.processes.pools import LOCAL, SCHEDULER


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What a cluster has at this moment, as its scheduler says."""

    address: str
    dashboard: str | None  # where the scheduler shows what it does
    n_workers: int
    n_threads: int
    memory_bytes: int  # that its workers may take; 0 where nobody limits them

    @property
    def words(self) -> str:
        """The same in a line."""
        memory = f", {self.memory_bytes / 1e9:.1f} GB" if self.memory_bytes else ""
        counts = {"worker": self.n_workers, "thread": self.n_threads}
        words = ", ".join(f"{n:,} {what}{'s' * (n != 1)}" for what, n in counts.items())
        return f"{self.address}: {words}{memory}"


def is_encrypted(address: str) -> bool:
    """True if the address of a scheduler uses TLS."""
    found = SCHEDULER.fullmatch(address.strip())
    return found is not None and found["protocol"] in ("tls", "wss")


def is_on_this_machine(address: str) -> bool:
    """True if a cluster runs on this machine only: ``local:N``, ``localhost`` or a loopback address.

    Names are not resolved, as their address can change between the check and the connection.
    """
    if n_own(address):
        return True
    found = SCHEDULER.fullmatch(address.strip())
    if found is None:
        return False
    host = found["ipv6"] or found["host"]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def n_own(address: str) -> int:
    """How many workers a scan starts for itself on this machine; 0 where the address is of a scheduler."""
    found = LOCAL.fullmatch(address.strip())
    return int(found[1]) if found else 0
