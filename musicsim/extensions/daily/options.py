"""Options of daily mixes and of watched folders, and the limits that they set: hours, battery and processors."""

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from re import ASCII, fullmatch
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from musicsim.explorer import option, settle
from musicsim.library import Library, absolute, lower_priority
from musicsim.progress import Canceled, Progress

ANY, NONE, ALL = "any", "none", "all"
PLAYS_TO_START = 10
"""Plays in the app's player after which mixes are made every day, unless the switch was used."""
_KEY = "machine.daily"  # not restored from a backup, because folders and hours belong to this machine
ON_BATTERY = "This machine runs on battery, so nothing is done."
POWER_SUPPLIES = Path("/sys/class/power_supply")
_EXTERNAL = ("Mains", "USB")
_CHECK_EVERY_S = 20.0
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class DailyOptions:
    """Changes of the settings; None and () keep the current value."""

    automatic: bool | None = option(
        None, f"Make mixes every day while the app is running; by default, from the first {PLAYS_TO_START} plays on.",
        label="New mixes every day",
    )  # fmt: skip
    watched: tuple[str, ...] = option(
        (), f"Folder in which to notice new files while the app is running; `{ALL}` for all folders, `{NONE}` for no "
        "folder.", label="Watch", flags=("--watched",),
    )  # fmt: skip
    hours: str | None = option(
        None, f"Hours of the day in which this may happen, such as 2-6, in local time; `{ANY}` for all hours.",
        label="Hours",
    )  # fmt: skip
    cpu: int | None = option(
        None, "Maximum share of this machine's processors, in percent; 50 by default.", label="CPU share (%)",
        min=5, max=100,
    )  # fmt: skip
    every: int | None = option(
        None, "Minutes between two checks for new files; 10 by default.", label="Minutes between checks",
        min=1, max=1440,
    )  # fmt: skip
    folder: str | None = option(
        None,
        f"Folder to write the mixes to as M3U8 files; `{NONE}` to write none.",
        label="Folder for M3U8 files",
        flags=("--write-to",),
    )
    servers: tuple[str, ...] = option(
        (), f"Music server to send the mixes to; `{NONE}` for no server.", label="Music servers",
        flags=("--server",),
    )  # fmt: skip

    def __post_init__(self) -> None:
        settle(self)
        if self.hours not in (None, "", ANY):
            _parse_hours(str(self.hours))


@dataclass(frozen=True, kw_only=True)
class DailySettings:
    automatic: bool | None = None  # None: from a number of plays on
    watched: tuple[str, ...] = ()  # folders, or ALL
    hours: str = ""  # such as 2-6; empty: all hours
    cpu: int = 50
    every: int = 10
    folder: str = ""
    servers: tuple[str, ...] = ()

    def has_mixes(self, library: Library) -> bool:
        """Return whether the app makes mixes every day."""
        return library.player_plays.count() >= PLAYS_TO_START if self.automatic is None else self.automatic

    def watches(self, folder: Path) -> bool:
        """Return whether the app notices new files in one of the library's folders."""
        return bool({ALL, os.fspath(folder)} & set(self.watched))

    def change(self, options: DailyOptions) -> "DailySettings":
        """Return the settings with the given options."""
        new = {name: value for name, value in asdict(options).items() if value not in (None, ())}
        if "hours" in new:
            new["hours"] = "" if new["hours"] == ANY else new["hours"]
        if "folder" in new:
            new["folder"] = "" if new["folder"] in ("", NONE) else str(absolute(new["folder"]))
        if "servers" in new:
            new["servers"] = tuple(name for name in new["servers"] if name != NONE)
        if "watched" in new:
            folders = [name for name in new["watched"] if name != NONE]
            new["watched"] = (ALL,) if ALL in folders else tuple(str(absolute(name)) for name in folders)
        return replace(self, **new)


_json = TypeAdapter(DailySettings)


def parse_stored(kind: TypeAdapter[_T], text: str | None) -> _T:
    """Return stored data; the defaults if there are none, or if they cannot be read."""
    try:
        return kind.validate_json(text or "{}")
    except ValidationError:
        return kind.validate_python({})


def _parse(text: str | None) -> DailySettings:
    settings = parse_stored(_json, text)
    if settings.automatic and text and "watched" not in json.loads(text):
        return replace(settings, watched=(ALL,))  # version 1.0 stored one switch for mixes and all folders
    return settings


def read_settings(library: Library) -> DailySettings:
    return _parse(library.text(_KEY))


def change_settings(library: Library, options: DailyOptions) -> None:
    library.update_text(_KEY, lambda text: _json.dump_json(_parse(text).change(options)).decode())


def watch_folder(library: Library, folder: Path, *, is_on: bool) -> None:
    """Turn the watching of one folder on or off."""

    def change(text: str | None) -> str:
        settings = _parse(text)
        others = {os.fspath(root) for root in (*library.files.roots(), folder) if settings.watches(root)}
        folders = others | {os.fspath(folder)} if is_on else others - {os.fspath(folder)}
        return _json.dump_json(replace(settings, watched=tuple(sorted(folders)))).decode()

    library.update_text(_KEY, change)


def includes(hours: str, now: datetime) -> bool:
    """Return whether the hours include a local time; 22-6 includes midnight, and "" includes every time."""
    if not hours:
        return True
    start, end = _parse_hours(hours)
    return start <= now.hour < end if start < end else now.hour >= start or now.hour < end


def _parse_hours(text: str) -> tuple[int, int]:
    match = fullmatch(r"([0-9]{1,2})-([0-9]{1,2})", text.strip(), ASCII)
    start, end = (int(hour) for hour in match.groups()) if match else (0, 0)
    if start == end or start > 23 or end > 24:
        raise ValueError(f"hours={text!r} must be two different hours from 0 to 24, such as 2-6, or {ANY}.")
    return start, end


def find_obstacle(hours: str, *, ignore_battery: bool = False) -> str:
    """Return a sentence about why nothing may be done now, or ""."""
    if not includes(hours, datetime.now()):
        return f"Nothing is done outside the hours {hours}."
    return ON_BATTERY if not ignore_battery and is_on_battery() else ""


def limit_cpu(percent: int) -> int:
    """Limit this process and its later workers to a share of the processors, and return the number of workers.

    Linux limits the process to some of the processors. On other systems, the number of workers and a low priority are
    the only limits.
    """
    n_workers = max(1, round((os.cpu_count() or 1) * percent / 100))
    if percent < 100:
        lower_priority(10)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-n_workers:])
    return n_workers


class LimitedProgress:
    """Progress that cancels the work when the hours end or the machine is unplugged; `obstacle` is the reason."""

    def __init__(self, progress: Progress, hours: str, *, ignore_battery: bool) -> None:
        self._progress, self._hours, self._ignore_battery = progress, hours, ignore_battery
        self._checked = -_CHECK_EVERY_S
        self.obstacle = ""

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        if time.monotonic() - self._checked >= _CHECK_EVERY_S:
            self._checked = time.monotonic()
            self.obstacle = find_obstacle(self._hours, ignore_battery=self._ignore_battery)
        if self.obstacle:
            raise Canceled
        self._progress(message, done, total, **facts)


def is_on_battery(root: Path | None = None) -> bool:
    """Return whether this machine runs on battery; False if this is unknown.

    `root` is the folder in which Linux describes power supplies. On macOS, `pmset` is asked.
    """
    if sys.platform == "darwin" and root is None:
        return _asks_pmset()
    supplies = [_read(folder) for folder in sorted((root or POWER_SUPPLIES).glob("*"))]
    external = [supply for supply in supplies if supply["type"] in _EXTERNAL]
    if any(supply["online"] not in ("", "0") for supply in external):
        return False
    # batteries of a mouse or a keyboard have the scope "Device"
    batteries = [supply for supply in supplies if supply["type"] == "Battery" and supply["scope"] != "Device"]
    if any(supply["status"] == "Discharging" for supply in batteries):
        return True
    return bool(batteries) and any(supply["online"] == "0" for supply in external)


def _read(folder: Path) -> dict[str, str]:
    def value(name: str) -> str:
        try:
            return (folder / name).read_text("utf-8", "replace").strip()
        except OSError:
            return ""

    return {name: value(name) for name in ("type", "online", "status", "scope")}


def _asks_pmset() -> bool:
    try:
        done = subprocess.run(["pmset", "-g", "batt"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return "'Battery Power'" in done.stdout
