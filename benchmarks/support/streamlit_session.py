"""A client that speaks Streamlit's WebSocket as its page does, without drawing anything."""

import asyncio
import http.client
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

__all__ = ["Session", "open_socket", "session", "upload_request"]

_PATIENCE_S = 120


class Session:
    """A session of an app: the content of its page, and the actions of a visitor.

    Attributes
    ----------
    pages : dict
        Streamlit's hash of each page, by its path.
    said : bytes
        All messages of the last run; elements that the client has cached are not sent again.
    """

    def __init__(self, socket: ClientConnection, address: str, headers: dict[str, str]) -> None:
        self._socket, self._host, self._headers = socket, urlsplit(address).netloc, headers
        self._id, self._page, self._query = "", "", ""
        self._known: dict[str, tuple[Element, str]] = {}  # large elements, which are not sent twice
        self._shown: dict[tuple[int, ...], tuple[Element, str]] = {}  # by place, with their fragments
        self.pages: dict[str, str] = {}
        self.said = b""

    @property
    def elements(self) -> list[Element]:
        """The elements after the last run."""
        return [element for element, _ in self._shown.values()]

    async def open(self) -> None:
        """Show the first page."""
        await self._run()

    async def switch(self, path: str) -> None:
        """Show another page."""
        self._page, self._query = self.pages[path], ""
        await self._run()

    async def file_address(self, name: str) -> Any:
        """Request the address for a file; return a message with `upload_url` and `file_id`."""
        asked = BackMsg()
        asked.file_urls_request.request_id = "1"
        asked.file_urls_request.file_names.append(name)
        asked.file_urls_request.session_id = self._id
        await self._socket.send(asked.SerializeToString())
        while (answer := await self._next()).WhichOneof("type") != "file_urls_response":
            pass
        (urls,) = answer.file_urls_response.file_urls
        return urls

    async def flood(self, n: int) -> None:
        """Request this many runs of the script at once, without waiting."""
        asked = BackMsg()
        asked.rerun_script.page_script_hash = self._page
        message = asked.SerializeToString()
        for _ in range(n):
            await self._socket.send(message)

    def problems(self) -> list[str]:
        """Return the errors on the page."""
        exceptions = [e.exception.message for e in self.elements if e.WhichOneof("type") == "exception"]
        alerts = [e.alert for e in self.elements if e.WhichOneof("type") == "alert"]
        return exceptions + [alert.body for alert in alerts if alert.format == Alert.ERROR]

    async def _next(self) -> ForwardMsg:
        said = await self._socket.recv(decode=False)
        self.said += said
        return ForwardMsg.FromString(said)

    async def _run(self) -> None:
        asked = BackMsg()
        rerun = asked.rerun_script
        rerun.page_script_hash, rerun.query_string = self._page, self._query
        rerun.cached_message_hashes.extend(self._known)
        self.said = b""
        await self._socket.send(asked.SerializeToString())
        while True:
            message = await self._next()
            kind = message.WhichOneof("type")
            if kind == "new_session":
                runs = set(message.metadata.run.fragment_ids)
                self._shown = {at: shown for at, shown in self._shown.items() if runs and shown[1] not in runs}
                self._page = message.new_session.page_script_hash
                self._id = message.new_session.initialize.session_id or self._id
            elif kind == "navigation":
                self.pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
            elif kind == "page_info_changed":
                self._query = message.page_info_changed.query_string
            elif kind == "ref_hash":
                self._shown[tuple(message.metadata.delta_path)] = self._known[message.ref_hash]
            elif kind == "delta" and message.delta.HasField("new_element"):
                shown = message.delta.new_element, message.delta.fragment_id
                self._shown[tuple(message.metadata.delta_path)] = shown
                if message.metadata.cacheable:
                    self._known[message.hash] = shown
            elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                return


@asynccontextmanager
async def session(address: str, **headers: str) -> AsyncIterator[Session]:
    """Open a session of the app at an address, and close it; `headers` go with every request."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if cookies := await asyncio.to_thread(_first_cookies, address, headers):
        headers["Cookie"] = cookies
    async with open_socket(address, headers) as connection:
        yield Session(connection, address, headers)


def open_socket(address: str, headers: dict[str, str]) -> connect:
    """Return a context manager that opens the WebSocket of a page."""
    return connect(
        f"{address.replace('http', 'ws', 1)}/_stcore/stream",
        subprotocols=["streamlit"],
        origin=address,  # as a browser sends it
        additional_headers=headers,
        max_size=None,
        open_timeout=_PATIENCE_S,
    )


def _first_cookies(address: str, headers: dict[str, str]) -> str:
    """Return the cookies that the page sets before the stream opens: a proxy identifies its visitors by them."""
    parts = urlsplit(address)
    connect_to = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}[parts.scheme]
    connection = connect_to(parts.netloc, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/", headers=headers)
        answer = connection.getresponse()
        answer.read()
        return "; ".join(cookie.partition(";")[0] for cookie in answer.headers.get_all("Set-Cookie", ()))
    finally:
        connection.close()


def upload_request(host: str, headers: dict[str, str], name: str, data: bytes) -> tuple[bytes, dict[str, str]]:
    """Make the body and the headers with which a page sends a file, with the token against forged requests."""
    connection = http.client.HTTPConnection(host, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/_stcore/health", headers=headers)
        answer = connection.getresponse()
        answer.read()
        token = re.search("_streamlit_xsrf=([^;]*)", "; ".join(answer.headers.get_all("Set-Cookie", ())))[1]
    finally:
        connection.close()
    mark = secrets.token_hex(16)
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'
    cookies = [*filter(None, [headers.get("Cookie")]), f"_streamlit_xsrf={token}"]
    return head.encode() + data + f"\r\n--{mark}--\r\n".encode(), {
        **headers, "Cookie": "; ".join(cookies), "X-Xsrftoken": token,
        "Content-Type": f"multipart/form-data; boundary={mark}",
    }  # fmt: skip
