import pytest

from musicsim.wording import add_number, clock, count, count_are, duration, speed, time_left


def test_noun_agrees_with_number():
    assert [count(n, "song") for n in (0, 1, 2000)] == ["0 songs", "1 song", "2,000 songs"]
    assert (count(3, "entry"), count(2, "search")) == ("3 entries", "2 searches")
    assert (count_are(1, "song"), count_are(0, "song")) == ("1 song is", "0 songs are")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (25.4, "25 seconds"),
        (60, "1 minute"),
        (4000, "67 minutes"),
        (7200, "2.0 hours"),
    ],
)
def test_duration_has_a_readable_unit(seconds, words):
    assert duration(seconds) == words


def test_less_than_a_second_left_has_no_number():
    assert [time_left(seconds) for seconds in (0.0, 0.9, 1.0, 75.0)] == [*["almost done"] * 2, "0:01 left", "1:15 left"]


@pytest.mark.parametrize(("per_second", "words"), [(2.5, "2.5 songs/s"), (0.025, "1.5 songs/min")])
def test_low_speed_is_per_minute(per_second, words):
    assert speed(per_second) == words


def test_free_name_has_lowest_free_number():
    assert [add_number("Jazz", used) for used in ((), {"Jazz"}, {"Jazz", "Jazz 2", "Jazz 4"})] == [
        "Jazz", "Jazz 2", "Jazz 3",
    ]  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (65.9, "1:05"), (3599, "59:59"), (3600, "1:00:00")])
def test_clock_shows_hours_only_if_needed(seconds, text):
    assert clock(seconds) == text
