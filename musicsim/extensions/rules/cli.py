"""The ``musicsim rules`` commands."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import console, take_request
from musicsim.explorer import Snapshot, snapshot_under
from musicsim.extensions.rules import files
from musicsim.extensions.rules.finding import find_songs, save_checked
from musicsim.extensions.rules.rule import RuleRequest
from musicsim.extensions.rules.store import RuleStore, SavedRule
from musicsim.library import day_of
from musicsim.wording import clock, count

group = typer.Typer(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Name of the rule.")]


@group.command("list")
def list_rules(library: console.LibraryOption = None, as_json: console.JsonOption = False) -> None:
    """List the saved rules.

    Examples:
        musicsim rules list
        musicsim rules list --json
    """
    with console.open_library(library) as lib:
        saved = RuleStore(lib).all()
    if as_json:
        console.emit([rule.as_json() for rule in saved])
    else:
        rows = [(r.name, r.rule, day_of(r.saved_at)) for r in saved]
        nothing = "This library has no rules. Save one with `musicsim rules save`."
        console.show(("name", "conditions", "saved"), rows, empty=nothing)


@group.command()
@take_request(RuleRequest)
def save(
    request: RuleRequest, name: NameArgument, library: console.LibraryOption = None, as_json: console.JsonOption = False
) -> None:
    """Save a rule, and count the songs that follow it now; it replaces a rule with the same name.

    Examples:
        musicsim rules save Jazz --where genre:jazz
        musicsim rules save Short --where length:..3:00 --songs 20
    """
    with console.open_library(library) as lib:
        _report(snapshot_under(lib, None), save_checked(lib, name, request.rule()), as_json=as_json)


@group.command()
def show(
    name: NameArgument,
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    model: console.ModelOption = None,
) -> None:
    """Show the songs that follow a rule now, in order.

    Examples:
        musicsim rules show Jazz
        musicsim rules show Jazz --json
    """
    with console.open_library(library) as lib:
        snapshot, saved = snapshot_under(lib, model), RuleStore(lib).get(name)
        found = find_songs(snapshot, saved.rule)
        songs = snapshot.songs_at(found.rows)
    if as_json:
        console.emit(saved.as_json() | {"matching": found.n_matching, "songs": [console.song_json(s) for s in songs]})
        return
    rows = [(n, s.id, s.title, s.artist or "", clock(s.duration_s)) for n, s in enumerate(songs, 1)]
    caption = f"{saved.rule}: {count(found.n_matching, 'song')}, {len(songs)} shown"
    nothing = f"No song follows “{saved.name}” now: {saved.rule}. Change it with `musicsim rules save`."
    console.show(("", "id", "title", "artist", "length"), rows, caption=caption, empty=nothing)


@group.command()
def export(
    name: NameArgument,
    file: Annotated[
        Path,
        typer.Argument(
            help="File to write: .json, .nsp (Navidrome), or the current songs as .m3u8, .pls, .xspf or .jspf."
        ),
    ],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
    model: console.ModelOption = None,
) -> None:
    """Write a rule, or the songs that follow it now, to a file.

    Examples:
        musicsim rules export Jazz jazz.json
        musicsim rules export Jazz jazz.m3u8
    """
    target = file.expanduser().absolute()
    with console.open_library(library) as lib:
        n_songs = files.export_rule(snapshot_under(lib, model), RuleStore(lib).get(name), target)
    if as_json:
        console.emit({"file": str(target), "songs": n_songs})
    else:
        console.echo(f"{target}" if n_songs is None else f"{count(n_songs, 'song')}: {target}")


@group.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="JSON file that `musicsim rules export` wrote.")],
    library: console.LibraryOption = None,
    as_json: console.JsonOption = False,
) -> None:
    """Save the rule in a JSON file; it replaces a rule with the same name.

    Examples:
        musicsim rules import jazz.json
        musicsim rules import jazz.json --library ~/jazz
    """
    with console.open_library(library) as lib:
        saved = files.import_rule(lib, file.expanduser().absolute())
        _report(snapshot_under(lib, None), saved, as_json=as_json)


@group.command()
def delete(name: NameArgument, library: console.LibraryOption = None, as_json: console.JsonOption = False) -> None:
    """Delete a rule, and print its conditions. Songs and saved playlists do not change.

    Examples:
        musicsim rules delete Jazz
        musicsim rules delete Jazz --json
    """
    with console.open_library(library) as lib:
        saved = RuleStore(lib).delete(name)
    if as_json:
        console.emit(saved.as_json())
    else:
        console.echo(f"“{saved.name}” was deleted: {saved.rule}")


def _report(snapshot: Snapshot, saved: SavedRule, *, as_json: bool) -> None:
    found = find_songs(snapshot, saved.rule)
    if as_json:
        console.emit(saved.as_json() | {"matching": found.n_matching, "songs": len(found.rows)})
    else:
        console.echo(f"“{saved.name}”: {count(found.n_matching, 'song')}, {len(found.rows)} within the limit.")
