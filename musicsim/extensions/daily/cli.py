"""The commands ``musicsim daily`` and ``musicsim watch``."""

import time
from typing import Annotated

import typer

from musicsim.cli import (
    JsonOption,
    LibraryOption,
    echo,
    emit,
    open_library,
    plain,
    progress_bar,
    report,
    show,
    take_request,
    warn,
)
from musicsim.explorer import list_changes, options_of
from musicsim.extensions.daily.mixes import make_daily_mixes, read_state, render_daily, summarize, undo_daily_mixes
from musicsim.extensions.daily.options import DailyOptions, change_settings, find_obstacle, read_settings
from musicsim.extensions.daily.watching import Watcher
from musicsim.library import Library
from musicsim.wording import clock, count

_PAUSE_S = 0.5
_BatteryOption = Annotated[bool, typer.Option("--ignore-battery", help="Also work while this machine runs on battery.")]
_HELP = {field: option.help for field, option in options_of(DailyOptions).items()}


@take_request(DailyOptions)
def daily(
    request: DailyOptions,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    status: Annotated[bool, typer.Option("--status", help="Show the settings and the last mixes.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Return to the mixes of the day before.")] = False,
    ignore_battery: _BatteryOption = False,
) -> None:
    """Without options, today's mixes are made. Options with a value change the settings instead.

    Examples:
        musicsim daily
        musicsim daily --automatic --write-to ~/Music/Mixes
    """
    with open_library(library) as lib:
        if list_changes(request):
            change_settings(lib, request)
        elif undo:
            undo_daily_mixes(lib)
        elif not status:
            obstacle = find_obstacle("", ignore_battery=ignore_battery)
            if obstacle:
                warn("no mixes", f"{obstacle} Add --ignore-battery to make them anyway.")
            else:
                with progress_bar() as progress:
                    make_daily_mixes(lib, progress=progress)
        if as_json:
            emit(render_daily(lib))
        else:
            _show(lib, with_settings=status or bool(list_changes(request)))


def _show(library: Library, *, with_settings: bool) -> None:
    if with_settings:
        settings = read_settings(library)
        echo("automatic: " + ("on" if settings.has_mixes(library) else "off"))
        echo(f"watched folders: {', '.join(settings.watched) or 'none'}")
        echo(f"hours: {settings.hours or 'any'}; CPU share: {settings.cpu}%; check every {settings.every} minutes")
        echo(f"folder: {settings.folder or 'none'}; servers: {', '.join(settings.servers) or 'none'}")
    run = read_state(library).current
    if run is None:
        typer.echo("There are no daily mixes yet.")
        return
    rows = [(mix.name, count(len(mix.song_ids), "song"), clock(mix.duration_s), mix.why) for mix in run.mixes]
    rows += [(skipped.name, "skipped", "", skipped.reason) for skipped in run.skipped]
    caption = f"{run.day}: {summarize(run)} ({run.cpu_seconds:.1f} s of CPU)"
    show(("daily mix", "songs", "length", "why"), rows, caption=plain(caption))


def watch(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    once: Annotated[bool, typer.Option("--once", help="Check once, and end when nothing is left to do.")] = False,
    every: Annotated[int | None, typer.Option(help=_HELP["every"], min=1, max=1440, metavar="MINUTES")] = None,
    hours: Annotated[str | None, typer.Option(help=_HELP["hours"])] = None,
    ignore_battery: _BatteryOption = False,
) -> None:
    """Options replace the settings of `musicsim daily` for this call. Ctrl-C ends it.

    With --json, each line is one object.

    Examples:
        musicsim watch
        musicsim watch --once --every 30
    """
    try:
        changes = DailyOptions(every=every, hours=hours)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with open_library(library) as lib:
        watcher, latest = Watcher(lib, ignore_battery=ignore_battery), ""
        while True:
            words, is_last = watcher.step(read_settings(lib).change(changes))
            if words != latest:
                report({"state": words}, words, as_json=as_json)
                latest = words
            if once and is_last:
                break
            time.sleep(_PAUSE_S)
