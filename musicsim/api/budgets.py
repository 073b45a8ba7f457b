"""Allowances that fill up evenly, and the address that has one.

An address is that of the connection, or the one that a reverse proxy forwards. uvicorn has to trust the proxy
(``FORWARDED_ALLOW_IPS``, this machine by default). It ignores addresses that others forward.
"""

import asyncio
import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address, ip_network
from weakref import WeakValueDictionary

from starlette.types import Scope

_MAX_ADDRESSES = 10_000


class Budget:
    """One allowance.

    Parameters
    ----------
    most : float
        The whole allowance, available at first.
    per_s : float
        The part of it that comes back per second.
    """

    def __init__(self, most: float, per_s: float) -> None:
        self._most, self._per_s = most, per_s
        self._left, self._since = most, time.monotonic()

    def wait_s(self, cost: float) -> float:
        """Return in how many seconds there is enough for a cost; 0 if there is enough now."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._since) * self._per_s)
        self._since = now
        return max(0.0, (min(cost, self._most) - self._left) / self._per_s)

    def spend(self, cost: float) -> float:
        """Take a cost; if there is not enough, take nothing and return in how many seconds there is."""
        wait_s = self.wait_s(cost)
        if not wait_s:
            self.charge(cost)
        return wait_s

    def charge(self, cost: float) -> None:
        """Take a cost, also if there is not enough; what is missing has to come back first."""
        self._left -= min(cost, self._most)


class Budgets:
    """One allowance per address; the addresses that asked last are remembered.

    Parameters
    ----------
    most : float
        The allowance of an address.
    full_in_s : float
        Time until a spent allowance is whole again.
    """

    def __init__(self, most: float, full_in_s: float = 60.0) -> None:
        self._most, self._per_s = most, most / full_in_s
        self._known: OrderedDict[str, Budget] = OrderedDict()

    def get(self, address: str) -> Budget:
        """Return the allowance of an address."""
        found = self._known.pop(address, None)
        self._known[address] = found = Budget(self._most, self._per_s) if found is None else found
        while len(self._known) > _MAX_ADDRESSES:
            self._known.popitem(last=False)
        return found

    def spend(self, address: str, cost: float) -> float:
        """Spend from the allowance of an address, as :meth:`Budget.spend`."""
        return self.get(address).spend(cost)


class Places:
    """A few places per key; others wait for one in the order of their arrival."""

    def __init__(self, n_per_key: int) -> None:
        self._n_per_key = n_per_key
        # forgotten when nobody holds a place or waits for one
        self._held: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def get(self, key: str) -> asyncio.Semaphore:
        """Return the places of a key; keep the result for as long as a place is held."""
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = asyncio.Semaphore(self._n_per_key)
        return found


def address_of(scope: Scope) -> str:
    """Return the address of a request, as :func:`network_of`."""
    return network_of(scope["client"][0] if scope["client"] else "")


def network_of(host: str) -> str:
    """Return an address; for IPv6 its network, as one household has a whole network."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))
