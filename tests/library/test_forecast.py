"""Time left: right while files differ in size and in what a byte of them costs."""

from pathlib import Path

import pytest

from musicsim.library.scan import forecast
from musicsim.library.scan.forecast import Forecast


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test turns."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(forecast, "time", made)
    return made


def test_nothing_is_said_before_there_is_a_speed(clock):
    told = Forecast([(Path("a.mp3"), 100)])
    assert told.seconds_left is None
    assert told.songs_per_second is None
    told.done(Path("a.mp3"), 100, 0.1)
    assert told.seconds_left is None


def test_time_left_follows_the_cost_of_each_kind(clock):
    """MP3: 1 s a 100 bytes, FLAC: 1 s a 1,000 bytes; two workers, one after another through all MP3 first."""
    files = [(Path(f"{n}.mp3"), 100) for n in range(10)] + [(Path(f"{n}.flac"), 1000) for n in range(10)]
    told = Forecast(files)
    for path, size in (files[0], files[10], *files[1:5]):
        clock.now += 0.5  # two at a time
        told.done(path, size, 1.0)
    # 5 MP3 and 9 FLAC are left: 14 s of work for two workers
    assert told.seconds_left == pytest.approx(7.0)
    assert told.songs_per_second == pytest.approx(2.0)


def test_a_kind_not_seen_yet_is_taken_for_the_usual(clock):
    told = Forecast([(Path("a.mp3"), 100), (Path("b.ape"), 300)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    assert told.seconds_left == pytest.approx(3.0)


def test_a_pause_does_not_count(clock):
    told = Forecast([(Path("a.mp3"), 100), (Path("b.mp3"), 100)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    clock.now += 3600.0
    told.rest(3600.0)
    assert told.seconds_left == pytest.approx(1.0)
    assert told.songs_per_second == pytest.approx(1.0)


def test_all_done_is_no_time_left(clock):
    told = Forecast([(Path("a.mp3"), 100)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    assert told.seconds_left == 0.0


def test_a_file_that_takes_long_does_not_raise_the_price_of_the_rest(clock):
    told = Forecast([(Path("a.mp3"), 100), (Path("b.mp3"), 300)])
    clock.now += 1.0
    told.done(Path("a.mp3"), 100, 1.0)
    clock.now += 600.0
    assert told.seconds_left == pytest.approx(3.0)


def test_a_pause_changes_neither_the_speed_nor_the_time_left(clock):
    told = Forecast([(Path(f"{n}.mp3"), 100) for n in range(8)])
    for number in range(4):
        clock.now += 1.0
        told.done(Path(f"{number}.mp3"), 100, 1.0)
        clock.now += 60.0
        told.rest(60.0)
    assert told.songs_per_second == pytest.approx(1.0)
    assert told.seconds_left == pytest.approx(4.0)
