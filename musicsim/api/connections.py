"""HTTP connections with a timeout for idle clients."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.h11_impl import h11 as states

PATIENCE_S = 30.0


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
