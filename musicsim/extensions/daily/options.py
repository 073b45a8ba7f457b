"""Options of daily mixes and of the automatic pickup, stored in the library for this machine."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from re import ASCII, fullmatch

from pydantic import TypeAdapter, ValidationError

from musicsim.explorer.requests.options import option, settle
from musicsim.library import Library, absolute

ANY, NONE = "any", "none"
_KEY = "machine.daily"  # not restored from a backup, because folders and hours belong to this machine


@dataclass(frozen=True, kw_only=True)
class DailyOptions:
    """Changes of the settings; None and () keep the current value."""

    automatic: bool | None = option(
        None, "Make mixes every day and pick up new files while the app is running.",
        label="A new mix every day, and automatic pickup of new files",
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
        None, f"Folder to write the mixes to as M3U8 files; `{NONE}` to write none.", label="Folder for M3U8 files"
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
    automatic: bool = False
    hours: str = ""  # such as 2-6; empty: all hours
    cpu: int = 50
    every: int = 10
    folder: str = ""
    servers: tuple[str, ...] = ()

    def change(self, options: DailyOptions) -> "DailySettings":
        """Return the settings with the given options."""
        new = {name: value for name, value in asdict(options).items() if value not in (None, ())}
        if "hours" in new:
            new["hours"] = "" if new["hours"] == ANY else new["hours"]
        if "folder" in new:
            new["folder"] = "" if new["folder"] in ("", NONE) else str(absolute(new["folder"]))
        if "servers" in new:
            new["servers"] = tuple(name for name in new["servers"] if name != NONE)
        return replace(self, **new)


_json = TypeAdapter(DailySettings)


def read_settings(library: Library) -> DailySettings:
    """Return the stored settings; the defaults if there are none, or if they cannot be read."""
    return _parse(library.text(_KEY))


def _parse(text: str | None) -> DailySettings:
    try:
        return _json.validate_json(text or "{}")
    except ValidationError:
        return DailySettings()


def change_settings(library: Library, options: DailyOptions) -> None:
    library.update_text(_KEY, lambda text: _json.dump_json(_parse(text).change(options)).decode())


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
