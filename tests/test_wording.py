import pytest

from musicsim.wording import count, duration


def test_noun_agrees_with_number():
    assert [count(n, "song") for n in (0, 1, 2000)] == ["0 songs", "1 song", "2,000 songs"]
    assert (count(1, "entry"), count(3, "entry")) == ("1 entry", "3 entries")


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
