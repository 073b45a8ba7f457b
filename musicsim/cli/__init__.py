"""The command line: the same services as the pages.

Results go to stdout (``--json`` for machines), progress and warnings to stderr. Exit codes: 0 all well,
1 an error, 2 wrong usage, 3 some files failed, or `doctor` found problems, 4 the disk is full, read-only or failing.
"""

import logging
import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import musicsim
from musicsim import logs
from musicsim._commit import commit
from musicsim.cli._lazy import lazy_commands
from musicsim.cli._terminal import errors, safe
from musicsim.errors import MusicsimError, StorageError
from musicsim.hooks import Command

__all__ = ["COMMANDS", "main", "program"]

_STORAGE_FAILED = 4
_MUSIC, _LISTEN, _LEARN, _KEEP = "Your music", "Listen", "Learn", "Maintain"

COMMANDS = {
    "add": Command("add:add", "Add folders or files, then update the model and the map.", _MUSIC),
    "scan": Command("add:scan", "Scan the library's folders again for new, changed, moved and missing files.", _MUSIC),
    "demo": Command(
        "demo:demo", "Compose the demo collection, add it, and import its listeners, tags and playlists.", _MUSIC
    ),
    "import": Command(
        "imports:import_listening", "Import plays, tags and playlists from other programs and services.", _MUSIC
    ),
    "imports": Command(
        "imports:imports", "List imports, latest first, and how many of their songs are not in the library.", _MUSIC
    ),
    "info": Command("info:info", "Show what the library holds, which model is in use, and what is running.", _MUSIC),
    "list": Command("list:list_songs", "List the songs of the library.", _MUSIC),
    "edit": Command("edit:edit", "Edit tags of songs in the library; the files are not changed.", _MUSIC),
    "artists": Command("artists:artists", "List artists that probably have several spellings, and merge them.", _MUSIC),
    "duplicates": Command(
        "duplicates:duplicates",
        "List duplicate songs; results and playlists show only the first of each group.",
        _MUSIC,
    ),
    "failed": Command(
        "failed:failed", "List files that were not added, each with its reason: failed or skipped.", _MUSIC
    ),
    "missing": Command("missing:missing", "List songs whose files are missing.", _MUSIC),
    "forget": Command(
        "forget:forget", "Remove a folder and its songs from the library; the music files are not touched.", _MUSIC
    ),
    "app": Command("app:run_app", "Open the app in the browser.", _LISTEN),
    "similar": Command(
        "similar:similar",
        "List the songs that sound most like a file, a song of the library or several, or that words describe.",
        _LISTEN,
    ),
    "playlist": Command(
        "playlist:playlist", "Generate a playlist from what songs have in common; every step says why.", _LISTEN
    ),
    "dialects": Command(
        "playlist:dialects",
        "List the kinds of playlist with weights of their own, their gain, and what they use.",
        _LISTEN,
    ),
    "train": Command("train:train", "Train a model of similarity, and evaluate it on held-out artists.", _LEARN),
    "models": Command("models:group", "List, use, rename, delete, export, import and add models.", _LEARN),
    "evaluate": Command(
        "evaluate:evaluate", "Evaluate each model: rankings, genres, confusions, hubs and coverage.", _LEARN
    ),
    "answers": Command("answers:group", "Export and import what listeners answered about songs.", _LEARN),
    "splits": Command("splits:group", "List, import and delete fixed splits to evaluate by.", _LEARN),
    "settings": Command("settings:settings", "Show or change the library's settings.", _KEEP),
    "doctor": Command(
        "doctor:doctor",
        "Examine the library and this machine, and say what to do; exit code 3: problems remain.",
        _KEEP,
    ),
    "report": Command(
        "doctor:report",
        "Write a file for a bug report: findings, versions, settings, sizes and log, without titles, names or paths.",
        _KEEP,
    ),
    "backup": Command("backup:backup", "Write the library, without the music itself, as one file.", _KEEP),
    "restore": Command("backup:restore", "Put a backup in the place of the library, or make a library of it.", _KEEP),
    "run-job": Command(
        "run_job:run_job", "Do a background job of a library in this process; the app starts these.", _KEEP
    ),
}
"""Commands of the core, by name; each is in the file of its own name, or of the main command of its group."""


class _Group(TyperGroup):
    """The program: commands of the core and of the extensions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands.update(lazy_commands(COMMANDS))
        self.commands["run-job"].hidden = True


program = typer.Typer(
    name="musicsim",
    cls=_Group,
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


@program.callback()
def _top(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say on stderr what is done in detail.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say on stderr only what ends the command.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and the commit, and exit.", is_eager=True, callback=_say_version
        ),
    ] = False,
) -> None:
    if verbose and quiet:
        raise typer.BadParameter("name --verbose or --quiet, not both.")
    logs.set_level(logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING)
    errors.quiet = quiet


def main() -> None:
    """Run the command of the arguments; our errors become one line and exit code 1, or 4 if storage fails."""
    logs.begin()
    try:
        program()
    except StorageError as error:
        _fail(str(error), _STORAGE_FAILED)
    except MusicsimError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail("stopped; what was added is kept, and the same command continues from there.")


def _fail(message: str, code: int = 1) -> NoReturn:
    errors.quiet = False
    errors.print(f"[red]error:[/red] {safe(message)}", highlight=False, soft_wrap=True)
    sys.exit(code)
