"""The benchmark compares the results that visitors saw with the correct ones."""

import pytest

pytest.importorskip("psutil", reason="the extra bench is not installed")

from benchmarks.visitors import Recording, Seen, Visit

MINE, OTHERS = Recording("recording001.flac", b"1"), Recording("recording002.flac", b"2")


def answers(recording: Recording, seen: Seen) -> dict[int, float]:
    """Each recording has answers of its own; a thumb puts its song in front, or removes it."""
    ids = [1, 2, 3] if recording is MINE else [4, 5, 6]
    thumbs = dict(seen.said)
    return {i: 0.9 - 0.1 * n + thumbs.get(i, 0) for n, i in enumerate(ids) if thumbs.get(i, 0) >= 0}


@pytest.mark.parametrize(
    ("names", "seen", "is_own"),
    [
        ({MINE.name}, [Seen(None, (), [1, 2, 3]), Seen(None, ((3, 1),), [3, 1, 2])], True),
        ({MINE.name}, [Seen(None, ((3, -1),), [1, 2])], True),
        (set(), [], True),
        ({MINE.name, OTHERS.name}, [Seen(None, (), [1, 2, 3])], False),
        ({MINE.name}, [Seen(None, (), [4, 5, 6])], False),
        ({MINE.name}, [Seen(None, (), [3, 1, 2])], False),
        ({MINE.name}, [Seen(None, ((3, -1),), [1, 2, 3])], False),
        ({MINE.name}, [Seen(None, (), [])], False),
    ],
)
def test_detects_data_of_other_visitors(names, seen, is_own):
    assert Visit(MINE, "WebSocket", seen=seen, names=names).is_own(answers) is is_own
