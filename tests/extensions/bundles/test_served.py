"""Tests of the app on a snapshot file, in several processes."""

import json

import pytest

from musicsim.extensions.bundles.bundle import write_bundle
from musicsim.progress import no_progress
from tests.test_app_server import running


@pytest.mark.long
def test_processes_share_snapshot_file_as_public_demonstration(tiny_library, tmp_path):
    file = tmp_path / "music.tar.zst"
    write_bundle(tiny_library, file, no_progress)
    titles = {song.title for song in tiny_library.songs()}
    with (
        running(tmp_path, "--snapshot", str(file), lines=2, XDG_CACHE_HOME=str(tmp_path)) as one,
        running(tmp_path, "--snapshot", str(file), lines=2, XDG_CACHE_HOME=str(tmp_path)) as other,
    ):
        for server in (one, other):
            assert "A public demonstration" in server.lines[1]
            status, said = server.answer("/api/songs", "localhost")
            assert (status, {song["title"] for song in json.loads(said)}) == (200, titles)
            song = json.loads(said)[0]["id"]
            status, said = server.answer(f"/songs/{song}/audio", "localhost")
            assert (status, b"this demonstration does not include its audio" in said) == (410, True)
        assert len(list(tmp_path.glob("musicsim/snapshots/*/music"))) == 1
