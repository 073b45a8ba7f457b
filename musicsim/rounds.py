"""A fair order among the addresses of visitors: the first request of every address, then the second, and so on."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

_MAX_ADDRESSES = 1_000  # addresses whose last turn is remembered
_LONG_LINE = 16  # requests; more of them are hardly those of a few households
_HOUSEHOLD, _SITE = 64, 48  # prefixes of IPv6 networks


@lru_cache(10_000)
def network_of(host: str, *, is_crowded: bool = False) -> str:
    """Return the network that counts as one address: an IPv4 address itself, or an IPv6 /64 (usually one household).

    If it is crowded, an IPv6 network is a /48, because one site can use all /64 networks in it. `host` is an address or
    such a network; other names are returned unchanged.
    """
    try:
        address = ip_address(host.partition("/")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    prefix = _SITE if is_crowded else _HOUSEHOLD
    return str(address.ipv4_mapped or ip_network((address, prefix), strict=False))


class Rounds:
    """The last turns of addresses, and the order of the next ones."""

    def __init__(self) -> None:
        self._n_turns = 0
        self._last: dict[str, int] = {}  # last turn of each address, oldest first

    def note(self, address: str) -> None:
        """Note that it was an address's turn."""
        self._n_turns += 1
        self._last.pop(address, None)
        self._last[address] = self._n_turns
        if len(self._last) > _MAX_ADDRESSES:
            del self._last[next(iter(self._last))]

    def ranks(self, waiting: Sequence[str], running: Iterable[str] = ()) -> list[tuple[int, int]]:
        """Return a rank for each waiting request of an address; the lowest rank is next.

        A rank is the number of requests of the same address that are running or come first, and its last turn. Requests
        without an address do not wait for a turn.
        """
        is_crowded = len(waiting) > _LONG_LINE
        n_before = Counter(network_of(address, is_crowded=is_crowded) for address in running)
        last = {network_of(address, is_crowded=is_crowded): turn for address, turn in self._last.items()}
        found = []
        for address in waiting:
            network = network_of(address, is_crowded=is_crowded)
            found.append((n_before[network], last.get(network, 0)) if address else (0, 0))
            n_before[network] += 1
        return found
