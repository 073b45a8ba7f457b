"""Tests of the mix on the Playlists page."""

import threading

import numpy as np
import pytest
import soundfile
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.extensions.mixtape import page
from musicsim.extensions.mixtape.mixes import mix_routes
from musicsim.library.db import schema
from musicsim.progress import Canceled
from tests.pages.actions import downloads, play_buttons, press, run_until
from tests.pages.test_playlist import open_page, select
from tests.waiting import PATIENCE_S


@pytest.mark.long
def test_mix_is_created_in_background(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(2).run()
    press(app, "playlist_draw")
    for name, value in (("seconds", 5), ("crossfade_s", 1), ("format", ".wav")):
        select(app, f"playlist_mix_{name}", value)
    press(app, "playlist_mix_it")
    run_until(app, lambda: "Play the mix" in play_buttons(app))
    path = app.session_state["playlist_mix"]
    (track,) = play_buttons(app)["Play the mix"]["tracks"]
    with TestClient(Starlette(routes=mix_routes())) as client:
        assert client.get(track["url"]).content == path.read_bytes()
        part = client.get(track["url"], headers={"Range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, path.read_bytes()[10:20])
        assert client.get("/mixes/..%2F..%2Fetc%2Fpasswd").status_code == 404
    # two songs of four seconds, with one second of crossfade
    assert soundfile.info(path).duration == pytest.approx(7.0, abs=0.2)
    assert np.abs(soundfile.read(path)[0]).max() > 0.1
    assert "Download the mix" in downloads(app)


@pytest.mark.long
def test_mix_in_different_order_changes_playlist_on_request_only(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(3).run()
    press(app, "playlist_draw")
    first, second, third = app.session_state["playlist"].song_ids
    with full.write() as connection:
        for song_id, tempo in ((first, 100.0), (second, 140.0), (third, 101.0)):
            row = schema.songs.c.id == song_id
            connection.execute(schema.songs.update().where(row).values(tempo=tempo, key="C", mode="major"))
    for name, value in (("seconds", 5), ("crossfade_s", 1), ("format", ".wav"), ("reorder", True)):
        select(app, f"playlist_mix_{name}", value)
    press(app, "playlist_mix_it")
    run_until(app, lambda: any(b.key == "playlist_mix_order" for b in app.button))
    assert app.session_state["playlist"].song_ids == (first, second, third)
    press(app, "playlist_mix_order")
    assert app.session_state["playlist"].song_ids == (first, third, second)
    assert not any(b.key == "playlist_mix_order" for b in app.button)
    press(app, "playlist_undo")
    assert app.session_state["playlist"].song_ids == (first, second, third)


def test_mix_can_be_canceled(full, monkeypatch):
    ended = threading.Event()

    def render_without_end(*_, progress):
        try:
            while True:
                progress("mixing", 1, 2)
        except Canceled:
            ended.set()
            raise

    monkeypatch.setattr(page, "render_mix", render_without_end)
    app = open_page()
    app.number_input(key="playlist_length").set_value(2).run()
    press(app, "playlist_draw")
    press(app, "playlist_mix_it")
    assert app.button(key="playlist_mix_it").disabled
    press(app, "playlist_mix_cancel")
    assert ended.wait(PATIENCE_S)
    assert not app.button(key="playlist_mix_it").disabled
    assert not any(b.key == "playlist_mix_cancel" for b in app.button)
