"""The addresses that the app's server listens on, and their messages."""

import socket
import sys

import pytest

from musicsim.cli.addresses import is_open_to_others, listen, urls
from musicsim.errors import AddressError


@pytest.fixture
def hear():
    """Return ``listen``; close everything that it opened at the end."""
    opened = []

    def hear(*arguments):
        sockets = listen(*arguments)
        opened.extend(sockets)
        return sockets

    yield hear
    for one in opened:
        one.close()


def _has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")


def _places(sockets):
    return {one.getsockname()[:2] for one in sockets}


@needs_ipv6
def test_default_listens_on_both_loopback_families(hear):
    sockets = hear(None, 21000)
    port = sockets[0].getsockname()[1]
    assert _places(sockets) == {("127.0.0.1", port), ("::1", port)}
    assert not is_open_to_others(sockets)
    assert urls(None, sockets) == [f"http://localhost:{port}"]


@needs_ipv6
@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_skips_port_taken_on_either_family(hear, family, address):
    with socket.create_server((address, 0), family=family) as other:
        taken = other.getsockname()[1]
        sockets = hear(None, taken)
        assert len(sockets) == 2
        assert {one.getsockname()[1] for one in sockets} != {taken}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_port_taken_on_other_address_is_free(hear):
    with socket.create_server(("127.0.0.2", 0)) as other:
        port = other.getsockname()[1]
        assert hear("127.0.0.1", port)[0].getsockname()[1] == port
        assert hear("0.0.0.0", port)[0].getsockname()[1] != port


@pytest.mark.parametrize("host", ["0.0.0.0", pytest.param("::", marks=needs_ipv6)])
def test_wildcard_host_lists_each_address(hear, host):
    sockets = hear(host, 21100)
    port = sockets[0].getsockname()[1]
    assert is_open_to_others(sockets)
    addresses = urls(host, sockets)
    assert addresses[0] == {"0.0.0.0": f"http://127.0.0.1:{port}", "::": f"http://[::1]:{port}"}[host]
    assert not any(host in address for address in addresses[1:] if host != "::")
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))[: 1 + (host == "::")]:
        with socket.socket(family) as client:
            client.connect((address, port))


@needs_ipv6
def test_ipv6_address_is_printed_in_brackets(hear):
    sockets = hear("::1", 21200)
    assert urls("::1", sockets) == [f"http://[::1]:{sockets[0].getsockname()[1]}"]
    assert not is_open_to_others(sockets)


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::7", "no-such-host.invalid", "http://localhost", "x" * 300])
def test_foreign_address_gives_clear_error(host):
    with pytest.raises(AddressError, match="this machine does not have this address"):
        listen(host, 21300)


def test_port_search_stops_at_last_port():
    with socket.create_server(("127.0.0.1", 65535)), pytest.raises(AddressError, match="no free port from 65535"):
        listen("127.0.0.1", 65535)
