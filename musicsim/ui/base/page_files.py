"""Middleware that answers a page's requests for files: to upload one, or to make the file of a download button."""

import asyncio
from collections import deque
from collections.abc import Coroutine

from starlette.types import Message, Receive, Send
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.Common_pb2 import FileURLsRequest, FileURLsResponse
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse, ForwardMsg
from streamlit.runtime import get_instance
from streamlit.runtime.backend_operation_handler import DeferredFileHandler

from musicsim.ui.base.page_messages import MAX_RUN_BYTES, parse_request
from musicsim.ui.base.page_socket import PageSocket

_MAX_FILES = 100  # per button
_MAX_TRIES = 3
_NEWER_FILE_S = 1.0


class PageFiles(PageSocket):
    """ASGI middleware that answers requests for files itself, because Streamlit 1.67 can fail to answer them.

    - If a run of the page starts while an answer waits to be sent, Streamlit drops the answer. The page waits forever.
    - If a function makes the file of a download button, each run of the page replaces the file, and Streamlit deletes
      the previous one. A click during the run requests the deleted file, and the page shows an error.
    """

    max_bytes = MAX_RUN_BYTES

    def follow(self, receive: Receive, send: Send) -> "_Files":
        return _Files(receive, send)


class _Button:
    """The files that a download button had during the last runs, the newest last."""

    def __init__(self) -> None:
        self.files: deque[str] = deque(maxlen=_MAX_FILES)
        self._renewed = asyncio.Event()

    def add(self, file: str) -> None:
        self.files.append(file)
        self._renewed.set()

    async def make_file(self, request: BackendOperationRequest) -> BackendOperationResponse:
        """Make the newest file; if this fails, try again with a newer file that a current run may add."""
        handler = DeferredFileHandler(lambda: get_instance().media_file_mgr)
        for _ in range(_MAX_TRIES):
            self._renewed.clear()
            request.deferred_file.file_id = self.files[-1]
            response = await handler.handle(request, request.session_id)
            if not response.error_msg or not await self._is_renewed():
                break
        return response

    async def _is_renewed(self) -> bool:
        try:
            return await asyncio.wait_for(self._renewed.wait(), _NEWER_FILE_S)
        except TimeoutError:
            return False


class _Files:
    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._session = ""
        self._buttons: dict[str, _Button] = {}
        self._answers: set[asyncio.Task[None]] = set()

    async def receive(self) -> Message:
        """Return the next message that is not answered here."""
        while True:
            message = await self._receive()
            if not self._begin_answer(message.get("bytes")):
                return message

    def note(self, sent: ForwardMsg) -> None:
        """Note the session and the files of download buttons, which messages to the page contain."""
        if sent.WhichOneof("type") == "new_session":
            self._session = sent.new_session.initialize.session_id
        element = sent.delta.new_element.download_button
        if element.deferred_file_id:
            self._buttons.setdefault(element.id, _Button()).add(element.deferred_file_id)

    def close(self) -> None:
        """Stop all answers."""
        for answer in self._answers:
            answer.cancel()

    def _begin_answer(self, data: bytes | None) -> bool:
        """Start to answer a request for files; return False for a message that Streamlit must answer."""
        message = parse_request(data or b"")
        if message is None:
            return False
        operation = message.backend_operation_request
        if message.WhichOneof("type") == "file_urls_request" and self._session:
            self._run(self._answer_upload(message.file_urls_request))
        elif operation.session_id == self._session and (button := self._find_button(operation.deferred_file.file_id)):
            self._run(self._answer_download(button, operation))
        else:
            return False
        return True

    def _find_button(self, file: str) -> _Button | None:
        return next((button for button in self._buttons.values() if file in button.files), None)

    def _run(self, answer: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer_upload(self, request: FileURLsRequest) -> None:
        answer = FileURLsResponse(response_id=request.request_id)
        for file in get_instance().uploaded_file_mgr.get_upload_urls(self._session, request.file_names):
            answer.file_urls.add(file_id=file.file_id, upload_url=file.upload_url, delete_url=file.delete_url)
        await self._send_to_page(ForwardMsg(file_urls_response=answer))

    async def _answer_download(self, button: _Button, request: BackendOperationRequest) -> None:
        await self._send_to_page(ForwardMsg(backend_operation_response=await button.make_file(request)))

    async def _send_to_page(self, answer: ForwardMsg) -> None:
        await self._send({"type": "websocket.send", "bytes": answer.SerializeToString()})
