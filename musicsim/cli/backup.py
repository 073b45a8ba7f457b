"""The ``musicsim backup`` and ``restore`` commands."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, LibraryOption, YesOption, confirm, emit, open_library, progress_bar, warn
from musicsim.errors import LibraryError
from musicsim.explorer import default_folder
from musicsim.library.archive import backups
from musicsim.wording import count


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; an existing backup is replaced.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    with_passwords: Annotated[
        bool,
        typer.Option(
            "--with-passwords",
            help="Include the connections to music servers and players, which contain passwords, and the links to "
            "listening tests. Asks for confirmation.",
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """The app can keep running; the backup is a consistent copy of the library.

    Examples:
        musicsim backup music.tar.zst
        musicsim backup /mnt/usb/music.tar.zst --with-passwords
    """
    question = f"Anyone with access to {file} can use your passwords and servers. Include the passwords?"
    if with_passwords and not confirm(question, yes=yes):
        raise LibraryError(f"{file}: nothing was written. Use --yes to include passwords, or omit --with-passwords.")
    with open_library(library) as lib, progress_bar() as progress:
        done = backups.back_up(lib, file, progress, with_passwords=with_passwords)
    for name in done.damaged:
        warn("not in the backup", f"the model {name!r}: its files are missing or damaged.")
    if as_json:
        emit({"file": str(file), "songs": done.n_songs, "bytes": done.n_bytes, "damaged": done.damaged})
    else:
        typer.echo(f"{count(done.n_songs, 'song')}, {done.n_bytes / 1e6:.1f} MB: {file}")


def restore(
    file: Annotated[
        Path | None, typer.Argument(help="A backup file. With --small: a small copy; by default, the newest one.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    small: Annotated[
        bool, typer.Option("--small", help="Restore only plays, tags, playlists, answers and edits, from a daily copy.")
    ] = False,
    with_passwords: Annotated[
        bool,
        typer.Option(
            "--with-passwords",
            help="Also restore the connections to music servers and players, and the links to listening tests. Asks "
            "for confirmation. Use this option only for your own backups.",
        ),
    ] = False,
    yes: YesOption = False,
) -> None:
    """The backup is checked before anything changes. This machine's settings do not change. If the backup contains
    music at remote addresses or in folders that are new to the library, you are asked to confirm them.

    Examples:
        musicsim restore music.tar.zst --library ~/restored
        musicsim restore --small
    """
    if small:
        if with_passwords:
            raise typer.BadParameter("small copies do not contain passwords.", param_hint="--with-passwords")
        _restore_small(file, library, as_json)
        return
    if file is None:
        raise typer.BadParameter("give a backup file, or use --small.")
    folder = library or default_folder()
    with progress_bar() as progress:
        done = backups.restore(
            file,
            folder,
            progress,
            with_passwords=with_passwords,
            accept=lambda consent: confirm(f"{file.name}: {consent.words} Restore it?", yes=yes),
        )
    if done.left_out:
        warn(
            "left out",
            f"{', '.join(done.left_out)}. If this is your own backup, use --with-passwords to restore them, too.",
        )
    created = datetime.fromtimestamp(done.created_at).isoformat(" ", "seconds")
    if as_json:
        emit({"library": str(folder), "songs": done.n_songs, "created_at": created, "left_out": done.left_out})
    else:
        typer.echo(f"{count(done.n_songs, 'song')} in {folder}, restored from a backup made on {created}.")


def _restore_small(file: Path | None, library: Path | None, as_json: bool) -> None:
    with open_library(library) as lib:
        source = file or lib.copies.latest()
        done = lib.copies.bring_back(source)
    if as_json:
        emit({"file": str(source), "songs": done.n_songs, "absent": done.n_absent, "before": str(done.before)})
        return
    typer.echo(f"Restored the data of {count(done.n_songs, 'song')} from {source}.")
    if done.n_absent:
        warn("left out", f"{count(done.n_absent, 'song')} not in the library. Add their files, and restore again.")
    if done.before:
        typer.echo(f"The replaced data is in {done.before}.")
