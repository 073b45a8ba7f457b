"""Transitions of the player: ends of decoded loops with known beats, speeds during the fade, and reasons."""

from dataclasses import replace

import numpy as np
import pytest
import soundfile

from musicsim import audio
from musicsim.errors import AudioDecodeError
from musicsim.explorer.mixing.beats import BeatGrid
from musicsim.explorer.mixing.song_ends import SongEnds, find_browser_delay, find_ends
from musicsim.explorer.mixing.transitions import WARM_UP_S, plan_transition
from tests.extensions.mixtape.loops import LEFT, RATE, loop

LATE_S = 0.03  # onset strengths peak up to this much after a beat, equally in all songs


def distance(at_s, first_s, tempo):
    """Return how long a time is after the nearest beat, in seconds."""
    beats = (at_s - first_s) * tempo / 60
    return (beats - round(beats)) * 60 / tempo


@pytest.fixture
def write(tmp_path):
    def write(y):
        soundfile.write(tmp_path / "loop.wav", y, RATE)
        return tmp_path / "loop.wav"

    return write


def test_ends_of_long_song_are_between_silences(write):
    silence = np.zeros((2 * RATE, 2), np.float32)
    y = np.concatenate([silence, loop(124, 50, channel=LEFT, offset_s=0.0), silence])
    ends = find_ends(write(y))
    assert ends.start_s == pytest.approx(2.0, abs=0.11)
    assert ends.end_s == pytest.approx(52.0, abs=0.5)  # the last beat is up to half a second before
    for grid, at_s in ((ends.first, 10.0), (ends.last, 45.0)):
        assert grid.tempo == pytest.approx(124, rel=2e-3)
        assert -0.01 < distance(grid.beat_after(at_s), 2.0, 124) < LATE_S


def test_short_song_has_the_same_beats_at_both_ends(write):
    ends = find_ends(write(loop(100, 12, channel=LEFT)))
    assert ends.end_s <= 12.0
    assert abs(distance(ends.last.beat_after(5), ends.first.first_s, 100)) < 0.01


@pytest.mark.parametrize("kind", ["silence", "noise"])
def test_song_without_beats_has_no_grids(write, rng, kind):
    y = np.zeros((5 * RATE, 2))
    ends = find_ends(write(y if kind == "silence" else y + 0.1 * rng.standard_normal(y.shape)))
    assert (ends.first, ends.last, ends.start_s) == (None, None, 0.0)


@pytest.mark.parametrize(("ending", "late_s"), [("mp3", 1105 / RATE), ("flac", 0.0), ("ogg", 0.0)])
def test_mp3_begins_late_in_browsers(tmp_path, ending, late_s):
    """LAME begins with 1105 samples that are not part of the song; browsers play the song after their time."""
    y = loop(120, 12, channel=LEFT)
    path = tmp_path / f"loop.{ending}"
    if ending == "mp3":
        with audio.open_encoder(path, "libmp3lame", "fltp", layout="stereo", rate=RATE, bit_rate=192_000) as encode:
            encode(audio.as_frame(RATE, np.ascontiguousarray(y.T)))
    else:
        soundfile.write(path, y, RATE)
    assert find_browser_delay(path) == pytest.approx(late_s, abs=1e-4)
    beat_s = find_ends(path).first.beat_after(5.0)
    assert -0.01 < distance(beat_s - late_s, 0.3, 120) < LATE_S


def test_file_without_sound_is_reported(tmp_path):
    (tmp_path / "song.wav").write_bytes(b"RIFF")
    with pytest.raises(AudioDecodeError, match="has no audio"):
        find_ends(tmp_path / "song.wav")


@pytest.fixture
def songs(tiny_library):
    first, second = tiny_library.songs()[:2]
    return replace(first, key="C", mode="major"), replace(second, key="G", mode="major")


def ends_of(tempo, seconds=200.0):
    grid = BeatGrid(0.25, 60 / tempo) if tempo else None
    return SongEnds(0.0, seconds, grid, grid)


@pytest.mark.parametrize(("tempo", "other"), [(120.0, 126.0), (126.0, 120.0), (90.0, 186.0), (170.0, 84.0)])
def test_slower_song_is_sped_up_until_beats_coincide(songs, tempo, other):
    plan = plan_transition(*songs, (ends_of(tempo), ends_of(other)))
    assert plan.reason == ""
    assert min(plan.rates) == 1.0
    assert max(plan.rates) <= 1.08
    assert plan.enter_s >= WARM_UP_S
    for k in range(plan.n_beats + 1):
        share = k / plan.n_beats
        out_s = plan.leave_s + share * plan.duration_s * plan.rates[0]
        in_s = plan.enter_s + share * plan.duration_s * plan.rates[1]
        assert distance(out_s, 0.25, tempo) == pytest.approx(0, abs=1e-6)
        # a song of half the tempo has a beat at every second one
        assert distance(in_s, 0.25, 2 * other if tempo > 1.5 * other else other) == pytest.approx(0, abs=1e-6)
    assert plan.leave_s + plan.duration_s * plan.rates[0] <= 200.0


def test_songs_of_one_tempo_keep_their_speed(songs):
    plan = plan_transition(*songs, (ends_of(120.0), ends_of(120.01)))
    assert plan.rates == (1.0, 1.0)


def test_songs_overlap_less_if_keys_do_not_fit(songs):
    first, second = songs
    plan = plan_transition(first, second, (ends_of(120.0), ends_of(121.0)))
    clash = plan_transition(first, replace(second, key="F#"), (ends_of(120.0), ends_of(121.0)))
    assert (plan.n_beats, clash.n_beats) == (16, 8)
    assert (plan.keys, clash.keys) == (("C major", "G major"), ("C major", "F# major"))


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (None, 120.0, "no regular beats at its end"), (120.0, None, "no regular beats at its start"),
        (92.0, 130.0, "92 and 130 beats/min are too different"),
    ],
)  # fmt: skip
def test_reasons_of_crossfades(songs, first, second, reason):
    plan = plan_transition(*songs, (ends_of(first), ends_of(second)))
    assert reason in plan.reason
    assert plan.tempos[0] == (first or songs[0].tempo)


def test_short_songs_are_crossfaded(songs):
    plan = plan_transition(*songs, (ends_of(120.0, 6.0), ends_of(120.0)))
    assert "too short" in plan.reason
