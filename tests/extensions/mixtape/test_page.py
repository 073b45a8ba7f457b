"""Tests of the mix on the Playlist page."""

import numpy as np
import pytest
import soundfile

from tests.pages.actions import run_until
from tests.pages.test_playlist import open_page, press, select


@pytest.mark.long
def test_mix_is_created_in_background(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(2).run()
    press(app, "playlist_draw")
    for name, value in (("seconds", 5), ("fade", 1), ("format", ".wav")):
        select(app, f"playlist_mix_{name}", value)
    press(app, "playlist_mix_it")
    run_until(app, lambda: any(b.key == "playlist_mix_play" for b in app.button))
    press(app, "playlist_mix_play")
    path = app.session_state["playlist_mix"]
    # two songs of four seconds, with one second of crossfade
    assert soundfile.info(path).duration == pytest.approx(7.0, abs=0.2)
    assert np.abs(soundfile.read(path)[0]).max() > 0.1
    assert any(b.proto.label == "Download the mix" for b in app.get("download_button"))
