"""The command line; it has the same functions as the app's pages.

Results go to stdout (as JSON with ``--json``); progress and warnings go to stderr. Exit codes: 0 success, 1 error or no
match, 2 wrong usage, 3 some files failed or `doctor` found problems, 4 the disk is full, read-only or failing, 130
canceled.
"""

import logging
import sys
from copy import copy
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import musicsim
from musicsim import logs
from musicsim.cli.lazy import LazyCommand, lazy_commands
from musicsim.cli.old_options import rename_options
from musicsim.cli.terminal import STOPPED, errors, safe
from musicsim.commit import commit
from musicsim.errors import MusicsimError, StorageError
from musicsim.hooks import Command
from musicsim.progress import Canceled
from musicsim.registry import find_outside

__all__ = ["COMMANDS", "main", "program"]

_log = logging.getLogger(__name__)
_STORAGE_FAILED = 4
# Groups of commands, in this order; only extensions have commands in the three that are not constants.
_START, _LISTEN, _IMPROVE, _LIBRARY, _RESEARCH, _KEEP = "Start", "Listen", "Improve", "Library", "Research", "Maintain"
_PANELS = (_START, _LISTEN, _IMPROVE, _LIBRARY, "Connect", _RESEARCH, _KEEP, "Host")

COMMANDS = {
    "app": Command("app:run_app", "Open the app in the browser.", _START, is_main=True),
    "add": Command("add:add", "Add folders or files, then update the model and the map.", _START, is_main=True),
    "demo": Command(
        "add:demo",
        "Compose the demo collection, add it, and import its listeners, tags and playlists.",
        _START,
        is_main=True,
    ),
    "scan": Command(
        "add:scan", "Scan the library's folders again for new, changed, moved and missing files.", _START, is_main=True
    ),
    "info": Command(
        "info:info", "Show the contents of the library, the model in use, and the running job.", _START, is_main=True
    ),
    "help": Command("help:show_help", "Show the help of a command, or list the commands of a group.", _KEEP),
    "list": Command("list:list_songs", "List the songs in the library.", _LISTEN, is_main=True),
    "similar": Command(
        "similar:similar",
        "List the songs most similar to a file, to songs in the library, or to a description in words.",
        _LISTEN,
        is_main=True,
    ),
    "playlist": Command(
        "playlist:playlist",
        "Generate a playlist of songs that have something in common; every step shows its reason.",
        _LISTEN,
        is_main=True,
    ),
    "dialects": Command(
        "playlist:dialects", "List the kinds of playlists that have their own weights, with gains and sources.", _LISTEN
    ),
    "train": Command(
        "train:train", "Train a similarity model, and evaluate it on held-out artists.", _IMPROVE, is_main=True
    ),
    "models": Command(
        "models:group", "List, use, rename, delete, export, import and add models.", _IMPROVE, is_main=True
    ),
    "import": Command(
        "imports:import_listening",
        "Import plays, tags and playlists from other programs and services.",
        _IMPROVE,
        is_main=True,
    ),
    "imports": Command(
        "imports:imports", "List imports, newest first, and count imported songs that are not in the library.", _IMPROVE
    ),
    "edit": Command("edit:edit", "Edit the tags of songs; your music files are not changed.", _IMPROVE),
    "artists": Command("edit:artists", "List artists that probably have several spellings, and merge them.", _IMPROVE),
    "duplicates": Command(
        "edit:duplicates", "List duplicate songs; results and playlists show only the first of each group.", _IMPROVE
    ),
    "libraries": Command("libraries:group", "List and create libraries, and choose the default one.", _LIBRARY),
    "failed": Command("edit:list_failures", "List failed and skipped files, with reasons.", _LIBRARY),
    "missing": Command("edit:list_missing", "List songs whose files are missing.", _LIBRARY),
    "forget": Command(
        "edit:forget", "Remove a folder and its songs from the library; your music files are not changed.", _LIBRARY
    ),
    "evaluate": Command(
        "evaluate:evaluate", "Evaluate each model: rankings, genres, confusions, hubs and coverage.", _RESEARCH
    ),
    "answers": Command("answers:group", "Export and import listeners' answers about songs.", _RESEARCH),
    "splits": Command("splits:group", "List, import and delete fixed splits for evaluations.", _RESEARCH),
    "settings": Command("info:settings", "Show or change the library's settings.", _KEEP),
    "doctor": Command(
        "doctor:doctor",
        "Check the library and this machine, and suggest repairs; exits with code 3 if problems remain.",
        _KEEP,
    ),
    "warm-up": Command(
        "warm_up:warm_up", "Compile the methods' loops once, so that the first fits take no longer than later.", _KEEP
    ),
    "report": Command(
        "doctor:report",
        "Write a bug report with findings, versions, settings, sizes and the log, but without titles, names or paths.",
        _KEEP,
    ),
    "backup": Command("backup:backup", "Write the library to one file, without the music itself.", _KEEP),
    "restore": Command("backup:restore", "Replace the library with a backup, or create a new library from one.", _KEEP),
    "run-job": Command("run_job:run_job", "Run a background job of a library in this process; used by the app.", _KEEP),
}
"""Core commands, keyed by name."""


class _Group(TyperGroup):
    """The program, with the core commands and the commands of extensions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        place = {panel: place for place, panel in enumerate(_PANELS)}
        commands = lazy_commands(COMMANDS)
        for name in sorted(commands, key=lambda name: place.get(commands[name].record.panel, len(place))):
            self.commands[name] = commands[name]
        self.commands["run-job"].hidden = True

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command, and give the command's options their new names."""
        return super().parse_args(ctx, rename_options(args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the program with its main commands, and the names of all groups."""
        groups, shown = self.groups(), copy(self)
        shown.commands = {
            name: one for name, one in self.commands.items() if isinstance(one, LazyCommand) and one.record.is_main
        }
        more = [name for name, commands in groups.items() if not all(one.record.is_main for one in commands)]
        shown.epilog = f"More: musicsim help {'|'.join(more)}"
        TyperGroup.format_help(shown, ctx, formatter)

    def groups(self) -> dict[str, list[LazyCommand]]:
        """Return the visible commands of each group, keyed by the group's name in lower case."""
        groups: dict[str, list[LazyCommand]] = {}
        for command in self.commands.values():
            if isinstance(command, LazyCommand) and not command.hidden:
                groups.setdefault((command.record.panel or "others").lower(), []).append(command)
        return groups


program = typer.Typer(
    name="musicsim",
    cls=_Group,
    help="Find songs in your own library that sound alike, and see why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        revision = commit(musicsim.__path__[0])
        typer.echo(f"musicsim {musicsim.__version__}" + (f" ({revision})" if revision else ""))
        raise typer.Exit


@program.callback()
def _top(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log details to stderr.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only fatal errors to stderr.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and the commit, and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    if verbose and quiet:
        raise typer.BadParameter("use --verbose or --quiet, not both.")
    logs.set_level(logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING)
    errors.quiet = quiet
    for outside in find_outside():
        if outside.record is None:
            _log.warning("%s", outside.fault)


def main() -> None:
    """Run the command in ``sys.argv``; a MusicsimError becomes one line and exit code 1, or 4 if storage fails."""
    logs.begin()
    try:
        program()
    except StorageError as error:
        _fail(str(error), _STORAGE_FAILED)
    except MusicsimError as error:
        _fail(str(error))
    except Canceled:
        _fail("canceled in the app; finished work is kept. Run the same command to resume.", STOPPED)


def _fail(message: str, code: int = 1) -> NoReturn:
    errors.quiet = False
    errors.print(f"[red]error:[/red] {safe(message)}", highlight=False, soft_wrap=True)
    sys.exit(code)
