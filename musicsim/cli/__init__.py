"""The command line: the same services as the pages.

Results go to stdout (``--json`` for machines), progress and warnings to stderr. Exit codes: 0 all well,
1 an error, 2 wrong usage, 3 some files failed, or `doctor` found problems, 4 the disk is full, read-only or failing.
"""

import logging
import sys
from typing import Annotated, NoReturn

import typer

import musicsim
from musicsim import logs
from musicsim._commit import commit
from musicsim.cli import (
    answers,
    backup,
    cluster,
    collection,
    exporting,
    guessing,
    health,
    importing,
    index,
    listenbrainz,
    listening,
    models,
    mpd,
    players,
    playlists,
    quality,
    servers,
    splits,
)
from musicsim.cli._console import SOME_FAILED, STORAGE_FAILED, errors, safe
from musicsim.errors import MusicsimError, StorageError

__all__ = ["SOME_FAILED", "STORAGE_FAILED", "app", "main"]

app = typer.Typer(
    name="musicsim",
    help="Drop a song, see what in your own collection sounds like it, and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        found = commit(musicsim.__path__[0])
        typer.echo(f"musicsim {musicsim.__version__}" + (f" ({found})" if found else ""))
        raise typer.Exit


@app.callback()
def _top(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say on stderr what is done in detail.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say on stderr only what ends the command.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and the commit, and exit.",
            is_eager=True,
            callback=_say_version,
        ),
    ] = False,
) -> None:
    if verbose and quiet:
        raise typer.BadParameter("name --verbose or --quiet, not both.")
    logs.set_level(logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING)
    errors.quiet = quiet


collection.register(app)
cluster.register(app)
guessing.register(app)
listening.register(app)
playlists.register(app)
mpd.register(app)
listenbrainz.register(app)
importing.register(app)
quality.register(app)
models.register(app)
answers.register(app)
exporting.register(app)
splits.register(app)
players.register(app)
servers.register(app)
health.register(app)
backup.register(app)
index.register(app)


def main() -> None:
    """Do what the arguments say: errors of ours become one line and exit code 1, or 4 where storage is at fault."""
    logs.begin()
    try:
        app()
    except StorageError as error:
        _fail(str(error), STORAGE_FAILED)
    except MusicsimError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("stopped; what was added is kept, and the same command continues from there.")


def _fail(message: str, code: int = 1) -> NoReturn:
    errors.quiet = False
    errors.print(f"[red]error:[/red] {safe(message)}", highlight=False, soft_wrap=True)
    sys.exit(code)
