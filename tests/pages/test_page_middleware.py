"""The middleware for the WebSockets of pages leaves other connections alone."""

import pytest
from starlette.testclient import TestClient

from musicsim.ui.base.message_cache import MessageCache
from musicsim.ui.base.page_files import PageFiles
from musicsim.ui.base.page_requests import PageRequests


@pytest.mark.parametrize("middleware", [MessageCache, PageFiles, PageRequests])
def test_other_connections_pass(middleware):
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    assert TestClient(middleware(app)).get("/").status_code == 204
