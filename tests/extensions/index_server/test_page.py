"""The Search page beside a server that answers searches: it brings songs there, and says where it is away."""

import pytest

from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.index_server import remote_index as index_server
from musicsim.extensions.index_server.remote_index import give_name
from tests.pages.actions import open_page
from tests.waiting import until


def captions(full):
    app = open_page("search")
    app.session_state["chosen"] = full.songs()[0].id
    app.run()
    assert not app.exception
    return " ".join(caption.value for caption in app.caption)


def test_where_the_server_is_away_the_page_says_so(full, monkeypatch):
    pytest.importorskip("pymilvus")
    give_name(full)
    monkeypatch.setenv("MUSICSIM_INDEX", "milvus:http://127.0.0.1:9")
    assert "does not answer" in captions(full)


def test_a_page_brings_the_songs_to_the_server(full, monkeypatch, tmp_path):
    pytest.importorskip("pymilvus")
    pytest.importorskip("milvus_lite")
    monkeypatch.setenv("MUSICSIM_INDEX", f"milvus:{tmp_path / 'songs.db'}")
    monkeypatch.setattr(index_server, "_LOOK_AGAIN_S", 0.0)
    captions(full)
    until(lambda: take_snapshot(full).search_trouble is None)
    assert "this machine searches" not in captions(full)
