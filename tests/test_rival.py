"""Rivals of the benchmarks run in separate processes and may crash there."""

import os
import signal

import numpy as np
import pytest
import soundfile

from benchmarks import extraction
from benchmarks.search import Case, Contender, measure
from benchmarks.support.report import race
from benchmarks.support.rival import RivalError, RivalProcess, timed
from tests.rivals import Contestant, CrashingBliss, built_to_crash, built_well


def test_rival_runs_and_times_itself_in_own_process():
    with RivalProcess(Contestant, 3) as rival:
        np.testing.assert_array_equal(rival.call("add", np.arange(3)).value, [3, 4, 5])
        assert rival.call("where").value not in (os.getpid(), None)
        assert set(rival.call("threads").value) <= {1}
        spent = race({"rival": lambda: rival.call("work", 0.05)}, repeats=1, clock=lambda: 0.0)
        assert spent["rival"] >= 0.05  # measured in the other process: this clock does not move
        assert timed(rival.call, "work", 0.02, clock=lambda: 0.0).seconds >= 0.02


@pytest.mark.parametrize("number", [signal.SIGILL, signal.SIGSEGV])
def test_crashed_rival_gives_clear_error(number):
    with RivalProcess(Contestant) as rival, pytest.raises(RivalError, match=number.name):
        rival.call("crash", number)


def test_rival_survives_exception():
    with RivalProcess(Contestant) as rival:
        with pytest.raises(RivalError, match="ValueError: no such file"):
            rival.call("fail")
        assert rival.call("add", 1).value == 1


def test_failed_rival_construction_gives_reason():
    with pytest.raises(RivalError, match="base is below 0"):
        RivalProcess(Contestant, -1)


def test_crashed_rival_is_excluded_from_ratios(monkeypatch, tmp_path):
    monkeypatch.setattr(extraction, "Bliss", CrashingBliss)
    monkeypatch.setattr(extraction, "version", lambda name: "1.0")
    path = tmp_path / "song.wav"
    soundfile.write(path, np.random.default_rng(0).normal(size=3 * 22050) * 0.1, 22050)
    row = extraction.measure(path, repeats=1)
    assert row["bliss_says"] == "its process was ended by SIGILL"
    assert row["times_faster_than_bliss"] is None
    assert row["times_faster_than_librosa"] > 0


@pytest.mark.long
def test_crashed_index_is_reported_and_others_measured():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    contenders = [
        Contender("crashes", "", built_to_crash, (1, 2), rival="numpy"),
        Contender("works", "", built_well, rival="numpy"),
    ]
    lines = []
    rows = measure(Case("small", "hard", X, X[:4], contenders), lines.append)
    assert [row["index"] for row in rows] == ["crashes", "works"]
    assert rows[0]["failed"] == "its process was ended by SIGILL"
    assert rows[1]["mb"] == 7e-6
    assert any("crashes, : left out, its process was ended by SIGILL" in line for line in lines)
