"""Places for open pages: all visitors share them, and one address gets only a few."""

import os
import time
from collections import defaultdict

from starlette.responses import HTMLResponse, JSONResponse

from musicsim.api.arrivals import Refused
from musicsim.api.streams import Stream
from musicsim.rounds import network_of

MAX_PAGES = 200
_PER_ADDRESS = MAX_PAGES // 8
IDLE_S = 300.0  # a page may be closed for another one if its visitor has not clicked for so long
_RETRY_AFTER_S = 60
_FULL = "The demonstration is full at the moment.\nTry again in a minute."  # a page does not wrap its lines
_HTML = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="{_RETRY_AFTER_S}">
<meta name="color-scheme" content="light dark">
<title>musicsim</title>
<style>body {{ font: 1.1rem sans-serif; margin: 20vh auto; max-width: 30rem; padding: 0 1rem; }}</style>
<p>{_FULL}</p>
</html>
"""


class Full(Refused):
    """There is no place for another page.

    With `is_page`, the response is a page that says so and reloads itself. Otherwise, it is JSON, which an open page
    shows.
    """

    def __init__(self, *, is_page: bool = False) -> None:
        super().__init__(503, _FULL, _RETRY_AFTER_S)
        headers = {"Retry-After": str(_RETRY_AFTER_S), "Cache-Control": "no-store"}
        self.response = HTMLResponse(_HTML, 503, headers) if is_page else JSONResponse(_FULL, 503, headers)


def pages_per_address() -> int:
    """Return the number of pages that an address may open; the owner can set it."""
    return int(os.environ.get("MUSICSIM_PAGES_PER_ADDRESS", _PER_ADDRESS))


class Pages:
    """The open pages. If they are full, the page that has been idle for longest makes room for another visitor.

    It is a page of the address that has the most pages. If it is not idle, it stays, unless that address has more pages
    than the other visitor's address would have. An address with all its pages open gets room only from its own pages.
    """

    def __init__(self) -> None:
        self._per_address = pages_per_address()
        self._addresses: dict[Stream, str] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def has_room(self, address: str) -> bool:
        """Return whether an address may open another page."""
        try:
            self._find_leaving(address)
        except Full:
            return False
        return True

    def make_room(self, address: str) -> None:
        """Make room for another page of an address; raises Full if this is not possible."""
        if (page := self._find_leaving(address)) is not None:
            self.remove(page)
            page.leave()

    def add(self, page: Stream, address: str) -> None:
        self._addresses[page] = address

    def remove(self, page: Stream) -> None:
        self._addresses.pop(page, None)

    def _find_leaving(self, address: str) -> Stream | None:
        """Return the page that has to leave for another one of an address, or None if there is room."""
        is_crowded = 2 * len(self) >= MAX_PAGES
        pages = defaultdict(list)
        for page, its_address in self._addresses.items():
            pages[network_of(its_address, is_crowded=is_crowded)].append(page)
        own = pages[network_of(address, is_crowded=is_crowded)]
        is_own_full = len(own) >= self._per_address
        if not is_own_full and len(self) < MAX_PAGES:
            return None
        n_most = len(own) if is_own_full else max(map(len, pages.values()))
        candidates = own if is_own_full else [page for some in pages.values() if len(some) == n_most for page in some]
        idlest = min(candidates, key=lambda page: page.last_heard)
        if n_most > len(own) + 1 or time.monotonic() - idlest.last_heard >= IDLE_S:
            return idlest
        raise Full
