"""What is sent to be searched with: the same answer as in this process, its beginning only, limits that hold."""

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
    """Temporary files that are still there."""
    return list((library.folder / "scratch").glob("*/*"))


def example(snapshot, source, name):
    """The example that a worker makes of a file."""
    return make_example(snapshot, outcome(decode_upload(snapshot, source, name)), content_hash(source), name)


def silence(path, minutes, rate=8000):
    soundfile.write(path, np.zeros(int(minutes * 60 * rate), np.int16), rate)
    return path


def test_a_worker_hears_what_this_process_hears(snapshot, tmp_path):
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


def test_a_song_of_the_library_is_known(snapshot):
    song = snapshot.library.songs()[3]
    assert example(snapshot, song.path, "x").song_id == song.id


@pytest.mark.slow
def test_of_three_hours_twenty_minutes_are_analysed_and_that_is_said(snapshot, tmp_path):
    data = silence(tmp_path / "long.flac", 180).read_bytes()
    assert len(data) < 1 << 20
    long = example(snapshot, data, "long.flac")
    assert long.duration_s == 1200.0
    assert len(long.frames) == 1 + 1200 * SAMPLE_RATE // 256
    assert long.is_cut
    assert long.notes == ("Only the first 20 minutes were analysed.",)
    assert len(find_similar(snapshot, long, 3)) == 3


def test_as_many_minutes_as_are_asked_for(snapshot, tmp_path):
    path = silence(tmp_path / "long.flac", 3)
    for minutes, seconds, notes in (
        (1, 60.0, ("Only the first minute was analysed.",)),
        (2.5, 150.0, ("Only the first 2.5 minutes were analysed.",)),
        (3, 180.0, ()),  # there is no more
        (60, 180.0, ()),
    ):
        sound = outcome(decode_upload(snapshot, path, "x", minutes))
        assert (sound.duration_s, sound.notes, sound.is_cut) == (seconds, notes, bool(notes))


@pytest.mark.parametrize("data", [b"", b"no sound at all" * 50, b"\x00" * 5000])
def test_bytes_that_are_no_sound_name_the_upload(snapshot, data):
    with pytest.raises(AudioError, match=r"^my upload\.mp3 "):
        outcome(decode_upload(snapshot, data, "my upload.mp3"))
    assert left(snapshot.library) == []


def test_a_blip_is_too_short(snapshot, tmp_path):
    path = write_song(tmp_path / "blip.wav", seconds=0.02)
    with pytest.raises(AudioTooShortError, match=r"^blip\.wav"):
        example(snapshot, path, "blip.wav")


def test_the_limits_of_the_library_hold(tiny_library, tmp_path):
    tiny_library.set_setting("file_seconds", 0.2)
    path = silence(tmp_path / "long.flac", 60)
    with pytest.raises(AudioError, match=r"^long\.flac: decoding took more than 0\.2 s"):
        outcome(decode_upload(take_snapshot(tiny_library), path, "long.flac", 60))
    assert left(tiny_library) == []


def test_an_empty_library_has_nothing_to_compare_with(store):
    with pytest.raises(ModelError, match="no songs to compare"):
        decode_upload(take_snapshot(store), b"", "x")
