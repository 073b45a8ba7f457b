"""The mixes of a day: stored in the library, made and undone, and written as M3U8 files and to connected servers."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from musicsim import registry
from musicsim.errors import MusicsimError, NotFoundError
from musicsim.explorer import DEFAULT_MINUTES, GeneratedPlaylist, Walk, render_song, take_snapshot
from musicsim.extensions.daily.options import DailySettings, parse_stored, read_settings
from musicsim.extensions.daily.plans import Plan, SkippedMix, plan_mixes
from musicsim.hooks import ListPlaylistServers, PlaylistServer
from musicsim.library import Library, atomic_path, change_text, m3u8, replace_playlists
from musicsim.progress import Progress, no_progress
from musicsim.wording import count, duration

SOURCE = "Daily mixes"
"""Source of these playlists in the library."""
_KEY = "machine.daily_mixes"  # not restored from a backup, because files of old mixes are deleted
_MIN_S = 60.0 * (DEFAULT_MINUTES - 2)  # a shorter mix may use songs of the day before
_SEEDS_PER_DAY = 100
_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f]+')
_ENDING = ".m3u8"
_MAX_NAME = 100  # characters of a file name; file systems allow 255 bytes


@dataclass(frozen=True, slots=True)
class DailyMix:
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
class MixRun:
    """The mixes of one day."""

    day: str  # such as 2026-11-26, in local time
    made_at: float  # seconds since 1970
    seconds: float
    cpu_seconds: float
    mixes: tuple[DailyMix, ...]
    skipped: tuple[SkippedMix, ...]
    written: Written


@dataclass(frozen=True, slots=True)
class DailyState:
    runs: tuple[MixRun, ...] = ()  # the current one, then the one of an earlier day
    last_day: str = ""  # the last day on which mixes were made; they may have been undone since

    @property
    def current(self) -> MixRun | None:
        return self.runs[0] if self.runs else None

    def before(self, day: str) -> MixRun | None:
        """Return the last run of a different day."""
        return next((run for run in self.runs if run.day != day), None)


_json = TypeAdapter(DailyState)


def read_state(library: Library) -> DailyState:
    return parse_stored(_json, library.text(_KEY))


def update_state(library: Library, change: Callable[[DailyState], DailyState]) -> None:
    """Change the runs, and make the current run's mixes the playlists of :data:`SOURCE`; models stay up to date."""
    with library.stay_refreshed(), library.write() as connection:  # models do not learn from these playlists
        text = change_text(connection, _KEY, lambda old: _json.dump_json(change(parse_stored(_json, old))).decode())
        state = parse_stored(_json, text)
        mixes = state.current.mixes if state.current else ()
        replace_playlists(connection, [(mix.name, None, mix.song_ids, mix.details) for mix in mixes], SOURCE)


def _mix_of(plan: Plan, drawn: GeneratedPlaylist, seed: int) -> DailyMix:
    """Return a generated playlist as a mix, with the reasons that the Playlists page shows."""
    taken = [[*pair, edge.reason, edge.probability, edge.label] for pair, edge in drawn.steps.items()]
    details = {"taken": taken, "seed": seed, "notes": [plan.why, *drawn.notes]}
    return DailyMix(plan.name, plan.why, tuple(song.id for song in drawn.songs), drawn.duration_s, details)


def make_daily_mixes(library: Library, day: date | None = None, progress: Progress = no_progress) -> MixRun:
    """Make and write the mixes of a day, by default today in local time. They replace the last ones.

    Each mix lasts 58 to 62 minutes, or less if too few songs match. Songs of the day before and of the day's other
    mixes are used only if others do not suffice. The same data and day give the same mixes.
    """
    wall, cpu = time.monotonic(), time.process_time()
    day = day or date.today()
    state = read_state(library)
    before = state.before(day.isoformat())
    mixes, skipped = _generate(library, day, before, progress)
    written = publish(library, mixes, state.current, read_settings(library))
    run = MixRun(
        day.isoformat(), time.time(), time.monotonic() - wall, time.process_time() - cpu, tuple(mixes), tuple(skipped),
        written,
    )  # fmt: skip

    def add(state: DailyState) -> DailyState:  # others may have made or undone mixes in the meantime
        before = state.before(run.day)
        return DailyState((run, before) if before else (run,), run.day)

    update_state(library, add)
    return run


def undo_daily_mixes(library: Library) -> MixRun | None:
    """Replace the mixes by those of the day before, and return these; None if there are none."""
    state = read_state(library)
    if state.current is None:
        raise NotFoundError("there are no daily mixes to undo. Make them with `musicsim daily`.")
    before = state.runs[1] if len(state.runs) > 1 else None
    mixes = before.mixes if before else ()
    written = publish(library, mixes, state.current, read_settings(library))
    restored = before and replace(before, written=written)

    def undo(now: DailyState) -> DailyState:  # others may have made mixes in the meantime, which stay
        runs = tuple(restored if restored and run == before else run for run in now.runs if run != state.current)
        return DailyState(runs, now.last_day)

    update_state(library, undo)
    return restored


def _generate(
    library: Library, day: date, before: MixRun | None, progress: Progress
) -> tuple[list[DailyMix], list[SkippedMix]]:
    snapshot = take_snapshot(library)
    progress("weighting the songs' common features")
    walk = Walk(snapshot)
    used = {i for mix in before.mixes for i in mix.song_ids} if before else set()
    mixes: list[DailyMix] = []
    skipped: list[SkippedMix] = []
    plans = list(plan_mixes(snapshot, day))
    for number, plan in enumerate(plans):
        progress(plan.name, number, len(plans))
        if isinstance(plan, SkippedMix):
            skipped.append(plan)
            continue
        seed = day.toordinal() * _SEEDS_PER_DAY + number
        drawn = _draw(walk, plan, frozenset(used), seed)
        if drawn is None:
            skipped.append(SkippedMix(plan.name, "Too few songs match."))
            continue
        mixes.append(_mix_of(plan, drawn, seed))
        used |= set(mixes[-1].song_ids)
    progress("writing the mixes", len(plans), len(plans))
    return mixes, skipped


def _draw(walk: Walk, plan: Plan, used: frozenset[int], seed: int) -> GeneratedPlaylist | None:
    """Generate a mix without the used songs, or with some of them if it would be too short."""
    drawn: list[GeneratedPlaylist] = []
    rested = plan.request.rested | used
    for request in (replace(plan.request, exclude=used), replace(plan.request, rested=rested)):
        try:
            drawn.append(walk.generate(request, seed))
        except NotFoundError:  # too few songs for a walk
            continue
        if drawn[-1].duration_s >= _MIN_S:
            return drawn[-1]
    best = max(drawn, key=lambda one: one.duration_s, default=None)
    return best if best is not None and len(best.songs) > 1 else None


def playlist_servers(library: Library) -> dict[str, PlaylistServer]:
    """Return the connected servers, keyed by name."""
    return {
        name: server
        for servers in registry.load_hooks(ListPlaylistServers)
        for name, server in servers(library).items()
    }


def publish(library: Library, mixes: Sequence[DailyMix], before: MixRun | None, settings: DailySettings) -> Written:
    """Write mixes to the folder and the servers of the settings, and remove the other copies of the run `before`."""
    files: list[str] = []
    sent: list[tuple[str, str]] = []
    problems: list[str] = []
    paths = {
        Path(settings.folder, f"{_NOT_IN_NAMES.sub('', mix.name)[:_MAX_NAME]}{_ENDING}"): mix
        for mix in mixes
        if settings.folder
    }
    for path, mix in paths.items():
        with _note(problems):
            with atomic_path(path) as temporary:
                temporary.write_bytes(m3u8(mix.name, library.songs_in_order(mix.song_ids)))
            files.append(str(path))
    old = before.written if before else Written()
    for path in sorted(set(map(Path, old.files)) - set(paths)):
        with _note(problems):
            if path.suffix == _ENDING:  # a damaged library deletes no other files
                path.unlink(missing_ok=True)
    servers = playlist_servers(library) if settings.servers or old.sent else {}
    for server in settings.servers:
        for mix in mixes:
            with _note(problems):
                if server not in servers:
                    raise MusicsimError(
                        f"{server}: this music server is not connected. Choose another one for daily mixes."
                    )
                servers[server].save(mix.name, mix.song_ids, mix.why)
                sent.append((server, mix.name))
    wanted = {(server, mix.name) for server in settings.servers for mix in mixes}
    for server, name in sorted(set(old.sent) - wanted):
        with _note(problems):
            if server in servers:
                servers[server].delete(name)
    return Written(tuple(files), tuple(sent), tuple(problems))


@contextmanager
def _note(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except (MusicsimError, OSError, ValueError) as error:
        problems.append(str(error))


def summarize(run: MixRun) -> str:
    """Return a sentence about the result of a run."""
    facts = [f"{count(len(run.mixes), 'mix')}, {len(run.skipped)} skipped"]
    written = run.written
    facts += [f"{count(len(written.files), 'file')} written"] if written.files else []
    facts += [f"{count(len(written.sent), 'playlist')} sent"] if written.sent else []
    facts += [f"{count(len(written.problems), 'problem')}: {' '.join(written.problems)}"] if written.problems else []
    return f"{' · '.join(facts)} · in {duration(run.seconds)}"


def render_daily(library: Library) -> dict[str, Any]:
    """Return the settings, and the last mixes with their songs and reasons, as JSON."""
    run = read_state(library).current
    if run is None:
        return {"settings": asdict(read_settings(library)), "run": None}
    songs = {song.id: render_song(song) for song in library.songs({i for mix in run.mixes for i in mix.song_ids})}
    mixes = [
        {"name": mix.name, "why": mix.why, "minutes": round(mix.duration_s / 60, 1),
         "songs": [songs[i] for i in mix.song_ids if i in songs]}
        for mix in run.mixes
    ]  # fmt: skip
    facts = {name: getattr(run, name) for name in ("day", "made_at", "seconds", "cpu_seconds")} | asdict(run.written)
    skipped = [asdict(one) for one in run.skipped]
    return {"settings": asdict(read_settings(library)), "run": {**facts, "mixes": mixes, "skipped": skipped}}
