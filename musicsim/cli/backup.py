"""Commands that write a library as one file and restore it."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli._console import JsonOption, LibraryOption, YesOption, confirm, emit, open_library, progress_bar, warn
from musicsim.errors import LibraryError


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write it; an earlier backup there is replaced.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    with_passwords: Annotated[
        bool,
        typer.Option(
            "--with-passwords",
            help="Include the connections to music servers and players, which hold passwords, and the links of "
            "listening tests. You are asked first.",
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """Write the library, without the music itself, as one file.

    The app may run and songs may be added meanwhile: the backup holds the library as it was at one moment.
    """
    from musicsim.explorer.health.backups import back_up
    from musicsim.explorer.progress import teller

    question = f"Anyone who gets {file} can use your passwords and servers. Write them into it?"
    if with_passwords and not confirm(question, yes=yes):
        raise LibraryError(
            f"{file}: nothing was written. Say --yes to include passwords, or leave --with-passwords out."
        )
    with open_library(library) as lib, progress_bar() as report:
        done = back_up(lib, file, teller(report), with_passwords=with_passwords)
    for name in done.damaged:
        warn("not in the backup", f"the model {name!r}: its files are gone or damaged.")
    if as_json:
        emit({"file": str(file), "songs": done.n_songs, "bytes": done.n_bytes, "damaged": done.damaged})
    else:
        typer.echo(f"{done.n_songs} songs, {done.n_bytes / 1e6:.1f} MB: {file}")


def restore(
    file: Annotated[
        Path | None, typer.Argument(help="A backup; with --small a small copy, by default the latest of the library.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    small: Annotated[
        bool,
        typer.Option(
            "--small",
            help="Bring back plays, tags, lists, answers and edits from a daily copy, and leave the rest as it is.",
        ),
    ] = False,
    with_passwords: Annotated[
        bool,
        typer.Option(
            "--with-passwords",
            help="Take the connections to music servers and players, and the links of listening tests, from the "
            "backup. You are asked first. Only for backups of your own.",
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """Put a backup in the place of the library, or make a library of it.

    Everything is checked before anything is replaced. This machine keeps its own settings. You are asked before
    addresses of music, such as https://..., come into the library.
    """
    if small:
        if with_passwords:
            raise typer.BadParameter("small copies hold none.", param_hint="--with-passwords")
        _restore_small(file, library, as_json)
        return
    if file is None:
        raise typer.BadParameter("name the backup, or take --small.")
    from musicsim.explorer.health.backups import restore as restore_library
    from musicsim.explorer.libraries import default_folder
    from musicsim.explorer.progress import teller

    folder = library or default_folder()
    with progress_bar() as report:
        done = restore_library(
            file,
            folder,
            teller(report),
            with_passwords=with_passwords,
            accept=lambda consent: confirm(f"{file.name}: {consent.words} Restore it?", yes=yes),
        )
    if done.left_out:
        warn("left out", f"{', '.join(done.left_out)}. If the backup is yours, --with-passwords takes them, too.")
    made = datetime.fromtimestamp(done.created_at).isoformat(" ", "seconds")
    if as_json:
        emit({"library": str(folder), "songs": done.n_songs, "created_at": made, "left_out": done.left_out})
    else:
        typer.echo(f"{done.n_songs} songs in {folder}, as they were on {made}.")


def _restore_small(file: Path | None, library: Path | None, as_json: bool) -> None:
    with open_library(library) as lib:
        source = file or lib.copies.latest()
        done = lib.copies.bring_back(source)
    if as_json:
        emit({"file": str(source), "songs": done.n_songs, "absent": done.n_absent, "before": str(done.before)})
        return
    typer.echo(f"Brought back from {source}: what was said of {done.n_songs} songs.")
    if done.n_absent:
        warn("left out", f"{done.n_absent} songs that are not in the library. Add them, and restore again.")
    if done.before:
        typer.echo(f"What it replaced is in {done.before}.")
