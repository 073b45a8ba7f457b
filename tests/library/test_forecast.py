"""Tests of the remaining time, with files of different sizes and different costs per byte."""

from pathlib import Path

import pytest

from musicsim.library.scan import forecast
from musicsim.library.scan.forecast import Forecast


@pytest.fixture
def clock(monkeypatch):
    """Provide a clock that the test advances."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(forecast, "time", made)
    return made


def test_no_forecast_before_speed_is_known(clock):
    told = Forecast([(Path("a.mp3"), 100)])
    assert told.seconds_left is None
    assert told.songs_per_second is None
    told.done(Path("a.mp3"), 100, 0.1)
    assert told.seconds_left is None


def test_time_left_follows_cost_per_format(clock):
    """MP3 costs 1 s per 100 bytes and FLAC 1 s per 1,000 bytes. Two workers process all MP3 files first."""
    files = [(Path(f"{n}.mp3"), 100) for n in range(10)] + [(Path(f"{n}.flac"), 1000) for n in range(10)]
    told = Forecast(files)
    for path, size in (files[0], files[10], *files[1:5]):
        clock.now += 0.5  # two at a time
        told.done(path, size, 1.0)
    # 5 MP3 and 9 FLAC files remain: 14 s of work for two workers
    assert told.seconds_left == pytest.approx(7.0)
    assert told.songs_per_second == pytest.approx(2.0)


def test_unseen_format_uses_average_cost(clock):
    told = Forecast([(Path("a.mp3"), 100), (Path("b.ape"), 300)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    assert told.seconds_left == pytest.approx(3.0)


def test_long_pause_does_not_count(clock):
    told = Forecast([(Path("a.mp3"), 100), (Path("b.mp3"), 100)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    clock.now += 3600.0
    told.rest(3600.0)
    assert told.seconds_left == pytest.approx(1.0)
    assert told.songs_per_second == pytest.approx(1.0)


def test_no_time_is_left_when_done(clock):
    told = Forecast([(Path("a.mp3"), 100)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    assert told.seconds_left == 0.0


def test_slow_file_does_not_raise_cost_of_others(clock):
    told = Forecast([(Path("a.mp3"), 100), (Path("b.mp3"), 300)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    clock.now += 600.0
    assert told.seconds_left == pytest.approx(3.0)


def test_repeated_pauses_do_not_change_forecast(clock):
    told = Forecast([(Path(f"{n}.mp3"), 100) for n in range(8)])
    for number in range(4):
        clock.now += 1.0
        told.done(Path(f"{number}.mp3"), 100, 1.0)
        clock.now += 60.0
        told.rest(60.0)
    assert told.songs_per_second == pytest.approx(1.0)
    assert told.seconds_left == pytest.approx(4.0)
