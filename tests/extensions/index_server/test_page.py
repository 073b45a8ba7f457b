"""Tests of the Listen page with an index server: it pushes songs, and reports when the server is down."""

import pytest

from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.index_server import remote_index as index_server
from musicsim.extensions.index_server.remote_index import give_name
from tests.pages.actions import open_page
from tests.waiting import PATIENCE_S, until


def captions(full):
    app = open_page("listen")
    app.session_state["chosen"] = full.songs()[0].id
    app.run()
    assert not app.exception
    return " ".join(caption.value for caption in app.caption)


def test_unreachable_server_is_shown_on_page(full, monkeypatch):
    pytest.importorskip("pymilvus")
    give_name(full)
    monkeypatch.setenv("MUSICSIM_INDEX", "milvus:http://127.0.0.1:9")
    assert "does not respond" in captions(full)


def test_page_pushes_songs(full, monkeypatch, tmp_path):
    pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    monkeypatch.setattr(index_server, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(index_server, "WITHIN_S", PATIENCE_S)
    captions(full)
    until(lambda: take_snapshot(full).search_trouble is None)
    assert "Searching locally" not in captions(full)
