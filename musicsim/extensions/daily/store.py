"""The last daily mixes of a library, and those of the day before."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from musicsim.explorer.playlists.walk import GeneratedPlaylist
from musicsim.extensions.daily.plans import Plan, Skipped
from musicsim.library import Library
from musicsim.library.db.database import change_text
from musicsim.library.stores.playlists import replace_playlists

SOURCE = "Daily mixes"
"""Source of these playlists in the library."""
_KEY = "machine.daily_mixes"  # not restored from a backup, because files of old mixes are deleted


@dataclass(frozen=True, slots=True)
class Mix:
    name: str
    why: str
    song_ids: tuple[int, ...]
    duration_s: float
    details: dict[str, Any]  # reasons, seed and notes, as in other saved playlists


@dataclass(frozen=True, slots=True)
class Written:
    """The copies of mixes outside the library."""

    files: tuple[str, ...] = ()  # M3U8 files
    sent: tuple[tuple[str, str], ...] = ()  # servers and names of playlists on them
    problems: tuple[str, ...] = ()  # a sentence for each copy that failed


@dataclass(frozen=True, slots=True)
class Run:
    """The mixes of one day."""

    day: str  # such as 2026-11-26, in local time
    made_at: float  # seconds since 1970
    seconds: float
    cpu_seconds: float
    mixes: tuple[Mix, ...]
    skipped: tuple[Skipped, ...]
    written: Written


@dataclass(frozen=True, slots=True)
class DailyState:
    runs: tuple[Run, ...] = ()  # the current one, then the one of an earlier day
    last_day: str = ""  # the last day on which mixes were made; they may have been undone since

    @property
    def current(self) -> Run | None:
        return self.runs[0] if self.runs else None

    def before(self, day: str) -> Run | None:
        """Return the last run of a different day."""
        return next((run for run in self.runs if run.day != day), None)


_json = TypeAdapter(DailyState)


def read_state(library: Library) -> DailyState:
    """Return the stored runs; none if they cannot be read."""
    return _parse(library.text(_KEY))


def _parse(text: str | None) -> DailyState:
    try:
        return _json.validate_json(text or "{}")
    except ValidationError:
        return DailyState()


def update_state(library: Library, change: Callable[[DailyState], DailyState]) -> None:
    """Change the runs, and make the current run's mixes the playlists of :data:`SOURCE`; models stay up to date."""
    with library.stay_refreshed(), library.write() as connection:  # models do not learn from these playlists
        state = _parse(change_text(connection, _KEY, lambda text: _json.dump_json(change(_parse(text))).decode()))
        mixes = state.current.mixes if state.current else ()
        replace_playlists(connection, [(mix.name, None, mix.song_ids, mix.details) for mix in mixes], SOURCE)


def mix_of(plan: Plan, drawn: GeneratedPlaylist, seed: int) -> Mix:
    """Return a generated playlist as a mix, with the reasons that the Playlist page shows."""
    taken = [[*pair, edge.reason, edge.probability, edge.label] for pair, edge in drawn.steps.items()]
    details = {"taken": taken, "seed": seed, "notes": [plan.why, *drawn.notes]}
    return Mix(plan.name, plan.why, tuple(song.id for song in drawn.songs), drawn.duration_s, details)
