"""Rate limits per client address.

The address is the peer address of the connection, or the one that a reverse proxy forwards. Only proxies in uvicorn's
``FORWARDED_ALLOW_IPS`` (by default, this machine) are trusted; addresses from other senders are ignored.
"""

import time
from functools import lru_cache

from starlette.types import Scope

from musicsim.rounds import network_of

_MAX_ADDRESSES = 10_000


class Budget:
    """An allowance that starts at `most`, its maximum, and is refilled by `per_s` per second."""

    def __init__(self, most: float, per_s: float) -> None:
        self._most, self._per_s = most, per_s
        self._left, self._since = most, time.monotonic()

    def wait_s(self, cost: float) -> float:
        """Return the seconds until a cost is affordable, or 0 if it is affordable now."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._since) * self._per_s)
        self._since = now
        return max(0.0, (min(cost, self._most) - self._left) / self._per_s)

    def spend(self, cost: float) -> float:
        """Charge a cost if it is affordable, and return 0; otherwise return the seconds to wait."""
        wait_s = self.wait_s(cost)
        if not wait_s:
            self.charge(cost)
        return wait_s

    def charge(self, cost: float) -> None:
        """Charge a cost even if it is not affordable; the allowance may become negative."""
        self._left -= min(cost, self._most)


class Budgets:
    """The budgets of the most recent addresses; an empty budget is full again after `full_in_s` seconds."""

    def __init__(self, most: float, full_in_s: float = 60.0) -> None:
        self.get = lru_cache(_MAX_ADDRESSES)(lambda _address: Budget(most, most / full_in_s))


def address_of(scope: Scope) -> str:
    """Return the client address of a request, in the form of :func:`musicsim.rounds.network_of`."""
    return network_of(scope["client"][0] if scope["client"] else "")
