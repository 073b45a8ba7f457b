"""Listening sockets for the app's server, and their URLs."""

import errno
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from musicsim.errors import AddressError

_LOOPBACK = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_ALL_OF_IPV6 = "::"
_PORTS_TRIED = 50
_LAST_PORT = 65535
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
_FAR_AWAY = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}  # addresses reserved for documentation


def listen(host: str | None, first_port: int) -> list[socket.socket]:
    """Open sockets on the first port, counting up from `first_port`, that is free on every address.

    `host` is a name or a numeric address (``0.0.0.0`` or ``::`` for all); if it is None, only this machine can connect.

    Raises AddressError if this machine does not have the address, or if all ports tried are in use.
    """
    places = [place for place in _LOOPBACK if _is_here(*place)] if host is None else _places(host)
    last_port = min(first_port + _PORTS_TRIED - 1, _LAST_PORT)
    for port in range(first_port, last_port + 1):
        opened: list[socket.socket] = []
        try:
            for family, address in places:
                opened.append(_open(family, address, port))
        except OSError as error:
            for opened_socket in opened:
                opened_socket.close()
            if error.errno not in _TAKEN:
                raise
        else:
            return opened
    raise AddressError(f"no free port from {first_port} to {last_port}: choose a different port with --port.")


def _places(host: str) -> list[tuple[socket.AddressFamily, str]]:
    try:
        results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        results = []
    places: list[tuple[socket.AddressFamily, str]] = [(family, str(address[0])) for family, *_, address in results]
    if not places or not all(_is_here(*place) for place in places):
        raise AddressError(
            f"--host {host}: this machine does not have this address. Use one of the machine's own addresses."
        )
    return places


def _open(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    both = address == _ALL_OF_IPV6 and socket.has_dualstack_ipv6()
    return socket.create_server((address, port), family=family, dualstack_ipv6=both)


def _is_here(family: socket.AddressFamily, address: str) -> bool:
    try:
        _open(family, address, 0).close()
    except OSError:
        return False
    return True


def is_open_to_others(sockets: Sequence[socket.socket]) -> bool:
    """Return True if other machines can reach these sockets."""
    return not all(ip_address(one.getsockname()[0]).is_loopback for one in sockets)


def urls(host: str | None, sockets: Sequence[socket.socket]) -> list[str]:
    """Return URLs for browsers; the first one is for this machine, if it can reach the server."""
    port = sockets[0].getsockname()[1]
    if host is None:
        hosts = ["localhost"]
    elif ip_address(sockets[0].getsockname()[0]).is_unspecified:
        hosts = ["127.0.0.1" if sockets[0].family == socket.AF_INET else "::1"]
        families = [sockets[0].family]
        if families == [socket.AF_INET6] and not sockets[0].getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY):
            families = [socket.AF_INET, socket.AF_INET6]
        hosts += [address for family in families if (address := _find_network_address(family))]
    else:
        hosts = [host]
    return [f"http://{f'[{name}]' if ':' in name else name}:{port}" for name in hosts]


def _find_network_address(family: int) -> str | None:
    """Return this machine's address on its network; connecting a datagram socket sends no packets."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_FAR_AWAY[socket.AddressFamily(family)], 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])
