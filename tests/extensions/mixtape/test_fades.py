"""Tests of fades on the beat: beats of rendered mixes, found in the two channels, and reasons for crossfades."""

import numpy as np
import pytest
import soundfile

from musicsim.explorer.mixing.beats import find_beats
from musicsim.extensions.mixtape.mixtape import render_mix
from musicsim.extensions.mixtape.request import MixRequest
from musicsim.library.db import schema
from tests.extensions.mixtape.loops import LEFT, RATE, RIGHT, loop


def noise(seconds):
    return 0.1 * np.random.default_rng(0).standard_normal((round(seconds * RATE), 2))


def render(store, songs, folder, **options):
    """Return a mix and its samples (n, 2)."""
    mix = render_mix(store, songs, folder / "mix.wav", MixRequest(**options))
    return mix, soundfile.read(mix.path, always_2d=True)[0]


def find_thumps(y, start_s, end_s):
    """Return the times of the thumps on one channel (n,): the centers of their energies, 20 ms after the beats.

    Stretching blurs thumps by a spectrum's length, 46 ms, but leaves their centers in place to within 10 ms.
    """
    step = RATE // 1000
    energy = np.square(y[: len(y) // step * step]).reshape(-1, step).sum(axis=1)
    times = []
    for at in range(round(1000 * start_s), round(1000 * end_s)):
        around = np.arange(at - 100, at + 101)
        if energy[at] == energy[around].max() > energy.max() / 1000:
            times.append(energy[around] @ around / energy[around].sum() / 1000)
    return np.array(times)


@pytest.mark.parametrize(("tempo", "offset_s"), [(87.0, 0.1), (124.0, 0.45)])
def test_beats_of_loops_are_found(tempo, offset_s):
    grid = find_beats(loop(tempo, 20, channel=LEFT, offset_s=offset_s).T, RATE, tempo * 1.005)
    assert grid.tempo == pytest.approx(tempo, rel=2e-3)
    away = (grid.beat_after(10.0) - offset_s) / grid.period_s
    # onset strengths peak up to 30 ms late, equally in all songs
    assert -0.01 < (away - round(away)) * grid.period_s < 0.03


@pytest.mark.parametrize("kind", ["noise", "silence", "moment", "clicks at random"])
def test_sounds_without_beats_have_no_grid(rng, kind):
    y = np.zeros((2, 20 * RATE), np.float32)
    if kind == "noise":
        y += (0.1 * rng.standard_normal(y.shape)).astype(np.float32)
    elif kind == "moment":
        y = y[:, :100] + np.float32(0.1)
    elif kind == "clicks at random":
        y[:, rng.integers(0, y.shape[1], 60)] = 0.8
    assert find_beats(y, RATE) is None


@pytest.mark.parametrize(("tempo", "other"), [(120, 126), (124, 116), (90, 186)])
def test_beats_coincide_during_fade(store, mixable, tmp_path, tempo, other):
    songs = mixable(loop(tempo, 24, channel=LEFT), loop(other, 24, channel=RIGHT, offset_s=0.71, seed=1))
    mix, y = render(store, songs, tmp_path, whole=True, beats=16)
    (fade,) = mix.fades
    assert (fade.n_beats, fade.reason) == (16, "")
    folded = other / 2 if other > 1.5 * tempo else other
    assert fade.duration_s == pytest.approx(16 * 60 / np.sqrt(tempo * folded), rel=2e-3)
    middle = fade.start_s + np.array([0.3, 0.7]) * fade.duration_s  # both songs are loud there
    leaving, arriving = (find_thumps(y[:, channel], *middle) for channel in (LEFT, RIGHT))
    assert len(leaving) >= 6
    away = np.abs(leaving[:, None] - arriving).min(axis=1)
    assert np.median(away) < 0.025
    assert away.max() < 0.035  # more would be heard as two beats

    # before and after the fade, the songs have their own tempo and order
    before = find_thumps(y[:, LEFT], 2, 8)
    after = find_thumps(y[:, RIGHT], fade.start_s + fade.duration_s + 0.2, mix.duration_s - 5)
    assert np.diff(before) == pytest.approx(60 / tempo, abs=2.5e-3)
    assert np.diff(after) == pytest.approx(60 / other, abs=2.5e-3)


def test_fade_states_parts_of_both_songs(store, mixable, tmp_path):
    songs = mixable(loop(120, 24, channel=LEFT), loop(126, 24, channel=RIGHT, offset_s=0.71))
    mix, y = render(store, songs, tmp_path, whole=True, beats=8)
    (fade,) = mix.fades
    # all beats of the songs are at known times; the stated parts begin and end up to 30 ms after beats
    for part, tempo, offset_s in ((fade.out_s, 120, 0.3), (fade.in_s, 126, 0.71)):
        for at_s in part:
            beats = (at_s - offset_s) * tempo / 60
            assert -0.01 < (beats - round(beats)) * 60 / tempo < 0.03
        assert part[1] - part[0] == pytest.approx(8 * 60 / tempo, rel=2e-3)
    assert fade.out_s[1] == pytest.approx(23.8, abs=0.04)  # the last beat
    assert mix.starts[1] == fade.start_s
    assert len(y) == round(mix.duration_s * RATE)


def test_songs_of_same_tempo_are_not_stretched(store, mixable, tmp_path):
    sounds = [loop(120, 24, channel=LEFT), loop(120, 24, channel=RIGHT, offset_s=0.71, seed=1)]
    mix, y = render(store, mixable(*sounds), tmp_path, whole=True, beats=16)
    (fade,) = mix.fades
    assert fade.n_beats == 16
    for channel, part in ((LEFT, fade.out_s), (RIGHT, fade.in_s)):
        assert part[1] - part[0] == pytest.approx(fade.duration_s, abs=1 / RATE)
        original = sounds[channel][round(part[0] * RATE) :][: round(fade.duration_s * RATE), channel]
        rendered = y[round(fade.start_s * RATE) :][: len(original), channel]
        gain = np.sin(np.pi / 2 * np.arange(len(original)) / len(original))
        faded = original * (gain if channel == RIGHT else gain[::-1])
        assert np.corrcoef(faded, rendered)[0, 1] > 0.999


def test_later_song_continues_seamlessly_after_fade(store, mixable, tmp_path):
    """A tone over the beats has the same level and phase in the stretched part and after it."""
    t = np.arange(24 * RATE) / RATE
    tone = np.zeros((len(t), 2), np.float32)
    tone[:, RIGHT] = 0.2 * np.sin(2 * np.pi * 441 * t)
    songs = mixable(loop(120, 24, channel=LEFT), loop(126, 24, channel=LEFT, seed=1) + tone)
    mix, y = render(store, songs, tmp_path, whole=True, beats=16)
    end = round((mix.fades[0].start_s + mix.fades[0].duration_s) * RATE)
    period = RATE // 441
    around = y[end - 20 * period : end + 20 * period, RIGHT]
    spectrum = np.exp(-2j * np.pi * np.arange(period) / period)
    waves = around.reshape(-1, period) @ spectrum
    assert np.abs(waves) == pytest.approx(np.abs(waves[-1]), rel=0.15)  # librosa's levels are off by 1 dB at ends
    assert np.abs(np.angle(waves / waves[-1])).max() < 0.2


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (lambda: loop(150, 24, channel=RIGHT), "the tempos 120 and 150 beats/min are too different"),
        (lambda: noise(24), "the later song has no regular beats at its start"),
    ],
    ids=["tempo", "noise"],
)
def test_unsuitable_songs_are_crossfaded(store, mixable, tmp_path, other, reason):
    songs = mixable(loop(120, 24, channel=LEFT), other())
    mix, _ = render(store, songs, tmp_path, whole=True, beats=8, crossfade_s=3)
    (fade,) = mix.fades
    assert (fade.n_beats, fade.reason) == (0, reason)
    assert fade.duration_s == pytest.approx(3)
    assert fade.words == f"crossfade: {reason}"


@pytest.mark.parametrize(("seconds", "n_beats"), [(6.0, 4), (3.6, 0)])
def test_short_songs_fade_over_fewer_beats(store, mixable, tmp_path, seconds, n_beats):
    """At most half of a song is faded: 3 s are seven beats, 1.8 s are less than four after the first beat at 0.3 s."""
    songs = mixable(loop(150, 24, channel=LEFT), loop(150, seconds, channel=RIGHT, seed=1))
    mix, _ = render(store, songs, tmp_path, beats=16)
    assert mix.fades[0].n_beats == n_beats
    assert mix.fades[0].reason == ("" if n_beats else "a song is too short for 4 beats")


def test_whole_songs_have_no_silence_at_their_ends(store, mixable, tmp_path):
    quiet = np.zeros((RATE, 2))
    (song,) = mixable(np.concatenate([quiet, noise(5), 2 * quiet[: RATE // 2], noise(2), quiet, quiet]))
    mix, y = render(store, [song], tmp_path, whole=True, crossfade_s=0)
    assert mix.duration_s == pytest.approx(7.5, abs=0.1)  # silence is measured in steps of 0.1 s
    sounding = np.abs(y).max(axis=1) > 0
    assert np.flatnonzero(sounding)[0] < 0.1 * RATE


def test_songs_are_reordered_only_on_request(store, mixable, tmp_path):
    songs = mixable(*(loop(tempo, 12, channel=LEFT, seed=tempo) for tempo in (80, 110, 82, 112)))
    with store.write() as connection:
        for song, tempo in zip(songs, (80.0, 110.0, 82.0, 112.0), strict=True):
            row = schema.songs.c.id == song.id
            connection.execute(schema.songs.update().where(row).values(tempo=tempo, key="C", mode="major"))
    mix, _ = render(store, songs, tmp_path, seconds=4, crossfade_s=1)
    assert mix.songs == tuple(store.songs([song.id for song in songs]))
    mix, _ = render(store, songs, tmp_path, seconds=4, crossfade_s=1, reorder=True)
    assert [songs.index(next(s for s in songs if s.id == song.id)) for song in mix.songs] == [0, 2, 1, 3]
