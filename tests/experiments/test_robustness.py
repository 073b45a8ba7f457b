"""The measures of the experiment on robustness."""

import pytest

from experiments.robustness import table
from musicsim.extensions.robustness.changes import UNCHANGED
from musicsim.extensions.robustness.measuring import Found


def test_row_compares_with_the_unchanged_queries():
    labels = {song: "A" if song < 110 else "B" for song in range(100, 125)} | {1: "A", 2: "A"}
    plain = [Found(True, tuple(range(100, 110))), Found(True, tuple(range(105, 115)))]
    noisy = [Found(False, (110, *range(101, 110))), plain[1]]
    first, second = table("made", "Sound", {UNCHANGED: plain, "noise": noisy}, [1, 2], labels, ["A", "B"], seed=0)
    assert (first["kept"], first["found"], first["P@1"]) == (1.0, 1.0, 1.0)
    assert (second["kept"], second["found"], second["P@1"]) == (pytest.approx(0.95), 0.5, 0.5)
    assert second["P@5"] == pytest.approx(0.9)
    assert second["difference P@1"].startswith("-0.500")
