"""Tests of uploaded queries: the same results as in this process, only their beginning, and enforced limits."""

import numpy as np
import pytest
import soundfile

from musicsim.errors import AudioError, AudioTooShortError, ModelError
from musicsim.explorer.search.query import find_similar, make_example, read_example
from musicsim.explorer.search.uploads import decode_upload
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.scan.files import content_hash
from tests.sounds import SAMPLE_RATE, write_song
from tests.waiting import outcome


def left(library):
    """Return the temporary files that still exist."""
    return list((library.folder / "scratch").glob("*/*"))


def example(snapshot, source, name):
    """Return the example that a worker makes of a file."""
    return make_example(snapshot, outcome(decode_upload(snapshot, source, name)), content_hash(source), name)


def silence(path, minutes, rate=8000):
    soundfile.write(path, np.zeros(int(minutes * 60 * rate), np.int16), rate)
    return path


def test_worker_analysis_matches_this_process(snapshot, tmp_path):
    path = write_song(tmp_path / "q.mp3", "noise", seed=77)
    here = read_example(snapshot, path, "q.mp3")
    for source in (path, path.read_bytes()):
        there = example(snapshot, source, "q.mp3")
        for name in ("vector", "peaks", "features"):
            np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
        for name in ("mfcc", "fluctuation"):
            np.testing.assert_array_equal(getattr(here.frames, name), getattr(there.frames, name))
        assert (there.notes, there.is_cut, there.duration_s) == ((), False, here.duration_s)
    assert path.exists(), "a file of the caller is not ours to remove"
    assert left(snapshot.library) == []


def test_library_song_is_recognized(snapshot):
    song = snapshot.library.songs()[3]
    assert example(snapshot, song.path, "x").song_id == song.id


@pytest.mark.long
def test_long_upload_is_cut_to_twenty_minutes(snapshot, tmp_path):
    data = silence(tmp_path / "long.flac", 180).read_bytes()
    assert len(data) < 1 << 20
    long = example(snapshot, data, "long.flac")
    assert long.duration_s == 1200.0
    assert len(long.frames) == 1 + 1200 * SAMPLE_RATE // 256
    assert long.is_cut
    assert long.notes == ("Only the first 20 minutes were analyzed.",)
    assert len(find_similar(snapshot, long, 3)) == 3


def test_analyzes_requested_minutes(snapshot, tmp_path):
    path = silence(tmp_path / "long.flac", 3)
    for minutes, seconds, notes in (
        (1, 60.0, ("Only the first minute was analyzed.",)),
        (2.5, 150.0, ("Only the first 2.5 minutes were analyzed.",)),
        (3, 180.0, ()),  # the file ends there
        (60, 180.0, ()),
    ):
        sound = outcome(decode_upload(snapshot, path, "x", minutes))
        assert (sound.duration_s, sound.notes, sound.is_cut) == (seconds, notes, bool(notes))


@pytest.mark.parametrize("data", [b"", b"no sound at all" * 50, b"\x00" * 5000])
def test_undecodable_upload_is_named_in_error(snapshot, data):
    with pytest.raises(AudioError, match=r"^my upload\.mp3 "):
        outcome(decode_upload(snapshot, data, "my upload.mp3"))
    assert left(snapshot.library) == []


def test_rejects_very_short_sound(snapshot, tmp_path):
    path = write_song(tmp_path / "blip.wav", seconds=0.02)
    with pytest.raises(AudioTooShortError, match=r"^blip\.wav"):
        example(snapshot, path, "blip.wav")


def test_library_time_limit_applies(tiny_library, tmp_path):
    tiny_library.set_setting("file_seconds", 0.2)
    path = silence(tmp_path / "long.flac", 60)
    with pytest.raises(AudioError, match=r"^long\.flac: decoding took more than 0\.2 s"):
        outcome(decode_upload(take_snapshot(tiny_library), path, "long.flac", 60))
    assert left(tiny_library) == []


def test_empty_library_gives_clear_error(store):
    with pytest.raises(ModelError, match="no songs to compare"):
        decode_upload(take_snapshot(store), b"", "x")
