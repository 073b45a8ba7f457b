"""Daily mixes as JSON and as sentences, for the command line, the HTTP interface and the page."""

from dataclasses import asdict
from typing import Any

from musicsim.explorer.rendering import render_song
from musicsim.extensions.daily.options import read_settings
from musicsim.extensions.daily.store import Run, read_state
from musicsim.library import Library
from musicsim.wording import count, duration


def summarize(run: Run) -> str:
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
