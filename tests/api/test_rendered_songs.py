"""Tracker modules and MIDI files in a library: scanned with their titles, similar to their recordings, and playable."""

import io

import numpy as np
import pytest
import soundfile

from musicsim.audio import load
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.search.query import find_similar, read_example
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.audio.signals import pitch
from tests.notes import MOD_S, midi, mod, needs_fluidsynth, needs_openmpt


@needs_openmpt
@needs_fluidsynth
def test_modules_and_midi_files_are_songs_like_others(client, tiny_library, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    content = {"tune.mod": mod("A tune", periods=(254, 127, 226, 190)), "song.MID": midi("A song")}
    for name, data in content.items():
        (folder / name).write_bytes(data)
    tiny_library.add(folder)
    refresh(tiny_library)
    songs = {song.path.name: song for song in tiny_library.songs() if song.path.parent == folder}
    assert {name: songs[name].title for name in content} == {"tune.mod": "A tune", "song.MID": "A song"}
    assert songs["tune.mod"].duration_s == pytest.approx(MOD_S, abs=0.02)
    snapshot = take_snapshot(tiny_library)
    for name, data in content.items():
        recording = tmp_path / f"{name}.wav"  # louder and resampled, so its samples differ
        soundfile.write(recording, 1.5 * load(data, sr=48_000), 48_000)
        first, *_ = find_similar(snapshot, read_example(snapshot, recording, name), 5, max_per_artist=None)
        assert first.song == songs[name]
        answer = client.get(f"/songs/{songs[name].id}/audio")
        assert answer.status_code == 200
        assert answer.headers["content-type"] in ("audio/mpeg", "audio/wav")
        samples, rate = soundfile.read(io.BytesIO(answer.content), always_2d=True)
        assert len(samples) / rate == pytest.approx(songs[name].duration_s, abs=0.1)
        start = samples[: int(1.5 * rate)].mean(axis=1)
        assert 1200 * np.log2(pitch(start, rate) / 440) == pytest.approx(0, abs=10)
