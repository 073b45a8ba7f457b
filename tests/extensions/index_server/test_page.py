"""Tests of Listen with an index server: it pushes songs, and reports when the server is down."""

import pytest
from starlette.testclient import TestClient

from musicsim.api.http import http_interface
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.index_server import remote_index as index_server
from musicsim.extensions.index_server.remote_index import give_name
from tests.pages.actions import open_page
from tests.waiting import PATIENCE_S, until


def trouble(full) -> str | None:
    """Return what a queue says of the server, after the page was opened."""
    assert not open_page("listen").exception
    with TestClient(http_interface()) as client:
        answer = client.post("/queue", json={"song": full.songs()[0].id})
        assert answer.status_code == 200
        return answer.json()["search_trouble"]


def test_unreachable_server_is_reported(full, monkeypatch):
    pytest.importorskip("pymilvus")
    give_name(full)
    monkeypatch.setenv("MUSICSIM_INDEX", "milvus:http://127.0.0.1:9")
    assert "does not respond" in trouble(full)


def test_page_pushes_songs(full, monkeypatch, tmp_path):
    pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    monkeypatch.setattr(index_server, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(index_server, "WITHIN_S", PATIENCE_S)
    trouble(full)
    until(lambda: take_snapshot(full).search_trouble is None)
    assert trouble(full) is None
