"""A client of the app's routes."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.library import Library


@pytest.fixture
def client(tiny_library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A client of the routes of an app with the tiny library."""
    from musicsim.api import routes

    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    with TestClient(Starlette(routes=routes())) as client:
        yield client
