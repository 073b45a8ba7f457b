"""Tests of the settings, the hours, the battery and the share of the processors."""

import subprocess
import sys
from datetime import datetime

import pytest

from musicsim.extensions.daily.options import (
    DailyOptions,
    DailySettings,
    LimitedProgress,
    change_settings,
    find_obstacle,
    includes,
    is_on_battery,
    read_settings,
)
from musicsim.progress import Canceled
from tests.simultaneous import count_lost


def supplies(root, **described):
    """Write the files of power supplies as Linux does."""
    for name, values in described.items():
        (root / name).mkdir(parents=True)
        for field, value in values.items():
            (root / name / field).write_text(f"{value}\n")
    return root


MAINS, NO_MAINS = {"type": "Mains", "online": 1}, {"type": "Mains", "online": 0}
FULL, EMPTYING = {"type": "Battery", "status": "Full"}, {"type": "Battery", "status": "Discharging"}


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({}, False),  # a desktop or a container
        ({"AC": MAINS}, False),
        ({"AC": MAINS, "BAT0": FULL}, False),
        ({"AC": NO_MAINS, "BAT0": EMPTYING}, True),
        ({"AC": NO_MAINS, "BAT0": {"type": "Battery", "status": "Unknown"}}, True),
        ({"BAT0": EMPTYING}, True),
        ({"BAT0": {"type": "Battery", "status": "Charging"}}, False),
        ({"AC": NO_MAINS, "usb": {"type": "USB", "online": 1}, "BAT0": FULL}, False),
        ({"mouse": EMPTYING | {"scope": "Device"}}, False),
    ],
)
def test_battery_is_recognized(tmp_path, described, expected):
    assert is_on_battery(supplies(tmp_path / "supplies", **described)) is expected


@pytest.mark.parametrize(
    ("hours", "inside"),
    [("2-6", {2, 3, 4, 5}), ("22-2", {22, 23, 0, 1}), ("0-24", set(range(24))), ("", set(range(24)))],
)
def test_hours_include_their_start_only(hours, inside):
    assert {hour for hour in range(24) if includes(hours, datetime(2026, 1, 1, hour, 59))} == inside


@pytest.mark.parametrize("hours", ["6", "2-2", "25-3", "2-25", "a-b", "-1-3", "٢-٦"])
def test_impossible_hours_are_refused(hours):
    with pytest.raises(ValueError, match="two different hours"):
        DailyOptions(hours=hours)


def test_options_change_only_what_is_given(tiny_library, tmp_path):
    assert read_settings(tiny_library) == DailySettings()
    options = DailyOptions(automatic=True, hours="2-6", folder=str(tmp_path), servers=("home",))
    change_settings(tiny_library, options)
    change_settings(tiny_library, DailyOptions(cpu=25))
    assert read_settings(tiny_library) == DailySettings(
        automatic=True, watched=(), hours="2-6", cpu=25, folder=str(tmp_path), servers=("home",)
    )
    change_settings(tiny_library, DailyOptions(automatic=False, hours="any", folder="none", servers=("none",)))
    assert read_settings(tiny_library) == DailySettings(automatic=False, cpu=25)
    tiny_library.set_text("machine.daily", "{damaged")
    assert read_settings(tiny_library) == DailySettings()


def test_no_simultaneous_option_is_lost(tiny_library):
    def change(library, side, number):
        change_settings(library, DailyOptions(**{("cpu", "every")[side]: 5 + number}))

    def kept(library, side, number):
        settings = read_settings(library)
        return (settings.cpu, settings.every)[side] == 5 + number

    assert count_lost(tiny_library.folder, change, n_pairs=50, kept=kept) == 0


def test_work_stops_when_the_machine_is_unplugged(tmp_path, monkeypatch):
    monkeypatch.setattr("musicsim.extensions.daily.options.POWER_SUPPLIES", tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    said = []
    LimitedProgress(lambda message, *_: said.append(message), "", ignore_battery=False)("one")
    supplies(tmp_path, BAT0=EMPTYING)
    LimitedProgress(lambda message, *_: said.append(message), "", ignore_battery=True)("two")
    stopped = LimitedProgress(lambda message, *_: said.append(message), "", ignore_battery=False)
    with pytest.raises(Canceled):
        stopped("three")
    assert said == ["one", "two"]
    assert "battery" in stopped.obstacle
    assert "battery" in find_obstacle("")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process to some processors")
def test_cpu_share_limits_the_processors():
    code = (
        "import os; from musicsim.extensions.daily.options import limit_cpu; n = limit_cpu(50); "
        "print(n == max(1, round(os.cpu_count() / 2)), len(os.sched_getaffinity(0)) <= n)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
