"""Uploads on the Listen page: decoded by a worker, their beginning first."""

import numpy as np
import pytest
import soundfile

from musicsim.library.processes.decoding import Decoder, DecodingDroppedError
from musicsim.library.processes.workers import Limits
from musicsim.ui.base.uploads import EXAMPLE
from tests.pages.actions import open_page
from tests.sounds import write_song
from tests.waiting import PATIENCE_S


def send(app, path):
    return app.get("file_uploader")[0].set_value((path.name, path.read_bytes(), "audio/flac")).run()


def said(app):
    return " ".join(caption.value for caption in app.caption)


@pytest.mark.long
def test_long_upload_is_cut_and_can_be_analyzed_completely(full, tmp_path):
    path = tmp_path / "long.flac"
    soundfile.write(path, np.zeros(25 * 60 * 8000, np.int16), 8000)
    app = send(open_page("listen"), path)
    assert not app.exception
    assert "Only the first 20 minutes were analyzed." in said(app)
    assert "20:00" in said(app)
    (button,) = [b for b in app.button if b.label == "Analyze the whole"]
    button.click().run()
    assert not app.exception
    assert "were analyzed" not in said(app)
    assert "25:00" in said(app)
    assert "Analyze the whole" not in [b.label for b in app.button]


def test_dropped_upload_is_decoded_again(full, tmp_path):
    app = send(open_page("listen"), write_song(tmp_path / "q.flac", "noise", seed=9))
    decoder = Decoder(n_workers=1)
    dropped = decoder.ask(lambda run: None, name="q.flac", limits=Limits(PATIENCE_S, 1024))
    dropped.drop()
    with pytest.raises(DecodingDroppedError):
        dropped.future.result(PATIENCE_S)
    decoder.close()
    app.session_state[EXAMPLE.name].decoding = dropped
    app.run()
    assert not app.exception
    assert "q.flac" in [s.value for s in app.header]
