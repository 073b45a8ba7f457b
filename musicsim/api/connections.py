"""HTTP connections with a timeout for idle clients, and with a limit per address for visitors."""

import asyncio

from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.h11_impl import h11 as states

from musicsim.api.pages import pages_per_address
from musicsim.rounds import network_of

PATIENCE_S = 30.0
_PER_PAGE = 2  # connections; browsers open six at first, but idle ones make room
_refusal = PlainTextResponse("too many connections.", 503, {"Retry-After": "15", "Connection": "close"})


class PatientProtocol(H11Protocol):
    """uvicorn's protocol with a timeout: it closes connections whose next request head does not arrive in time.

    It also closes connections that are still sending a request body after the response.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        ours, theirs = self.conn.our_state, self.conn.their_state
        if theirs is states.IDLE or (ours is states.DONE and theirs is states.SEND_BODY):
            if self._deadline is None:
                self._deadline = self.loop.call_later(PATIENCE_S, self.transport.close)
        else:
            self._stop()

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class FairProtocol(PatientProtocol):
    """A protocol that also limits the connections per address, so that one address cannot take all of them.

    The oldest idle connection of an address makes room for a new one; without one, the response is 503. Proxies whose
    ``X-Forwarded-For`` is trusted have no limit: they limit the connections of their own clients.
    """

    _address: str | None = None  # None: no limit
    _arrived = 0.0

    @property
    def is_idle(self) -> bool:
        """True if no request is being answered; part of the next request may have arrived."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        proxies = getattr(self.app, "trusted_hosts", ())
        if self.client is None or self.client[0] in proxies:
            return
        others = self._others_of(self.client[0])
        self._address, self._arrived = self.client[0], self.loop.time()
        if len(others) < _PER_PAGE * pages_per_address():
            return
        if idle := [other for other in others if other.is_idle]:
            min(idle, key=lambda other: other._arrived).transport.close()
        else:
            self.app = _refusal

    def _others_of(self, address: str) -> "list[FairProtocol]":
        """Return the open connections of an address."""
        is_crowded = self.limit_concurrency is not None and 2 * len(self.connections) >= self.limit_concurrency
        network = network_of(address, is_crowded=is_crowded)
        return [
            other
            for other in self.connections
            if isinstance(other, FairProtocol)
            and other._address is not None
            and network_of(other._address, is_crowded=is_crowded) == network
            and not other.transport.is_closing()
        ]
