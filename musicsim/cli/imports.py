"""The ``musicsim import`` and ``imports`` commands."""

from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli.console import JsonOption, LibraryOption, echo, emit, errors, open_library, progress_bar, report, show
from musicsim.errors import StoreLockedError
from musicsim.explorer import render_fields
from musicsim.explorer.playlists.fit import refit_walks
from musicsim.library import ImportReport, Library, day_of, importing
from musicsim.library.importing import ImportPreview
from musicsim.library.stores.listening import ImportEntry
from musicsim.wording import count, count_are

_MAX_LISTED = 20
_COUNTS = {"rows": "n_rows", "plays": "n_plays", "songs": "n_songs", "matched": "n_matched"}


def import_listening(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files, folders or .zip archives with plays, tags or playlists.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    as_format: Annotated[
        str | None, typer.Option("--as", help="The files' format, if it is ambiguous.", metavar="FORMAT")
    ] = None,
    listener: Annotated[
        str | None, typer.Option(help='Name of the listener, if it is not in the files; "me" by default.')
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="utf-8, utf-16, latin-1 or cp1252, if the files are not UTF-8.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; write nothing.")] = False,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Also accept similar spellings with at least this score.")
    ] = None,
    undo: Annotated[int | None, typer.Option(help="Undo the import with this number.")] = None,
) -> None:
    """Sources: Last.fm, ListenBrainz, Spotify and other programs, beets (library.db),
    playlist files (M3U, PLS, XSPF, JSPF), and your own CSV files. Songs are matched by file path, then by MusicBrainz
    id, then by artist and title. Unmatched plays and tags are kept and matched later. Importing a file again replaces
    its earlier import.

    Examples:
        musicsim import scrobbles.csv --listener anna
        musicsim import ~/Music/playlists --dry-run
    """
    if (undo is None) == (not files):
        raise typer.BadParameter("give files to import, or the number of an import to --undo")
    with open_library(library) as lib:
        if undo is not None:
            entry = lib.listening.undo(undo)
            report(_entry_json(entry), f"import {entry.id} ({entry.name}) was undone.", as_json=as_json)
            return
        seen, done = _import(lib, files or [], as_format, listener, encoding, None if dry_run else min_score or 2.0)
    result = _preview_json(seen) | {"import": done.import_id if done else None, "dry_run": dry_run}
    if done:
        result |= {"matched": done.n_matched, "recording_ids": done.n_recording_ids}
    emit(result) if as_json else _show(result)


def _import(
    lib: Library,
    files: list[Path],
    fmt: str | None,
    listener: str | None,
    encoding: str | None,
    accept_from: float | None,
) -> tuple[ImportPreview, ImportReport | None]:
    """Return the preview and the import report; if `accept_from` is None, only preview the import."""
    with progress_bar() as progress:
        try:
            batch = importing.read_listening(files, fmt, listener, progress, encoding=encoding)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        seen = importing.preview_import(lib, batch, progress)
        if accept_from is None:
            return seen, None
        progress("writing")
        done = importing.commit_import(lib, seen, [p for p in seen.proposals if p.score >= accept_from])
        if batch.kind == "playlists":
            try:
                refit_walks(lib, progress)
            except StoreLockedError:
                errors.print("Another job is running: new playlists will use this import after the next scan.")
    return seen, done


def _preview_json(seen: ImportPreview) -> dict[str, Any]:
    return {
        **render_fields(seen.batch, "kind", "format"),
        **render_fields(seen, "listeners", matched_by="songs_by", **_COUNTS),
        "first": day_of(seen.batch.first_at),
        "last": day_of(seen.batch.last_at),
        "skipped": [render_fields(s, "reason", "count", "places") for s in seen.batch.skipped],
        "close": [
            render_fields(p.song, "artist", "title")
            | render_fields(p, "label", "count", song="song_id")
            | {"score": round(p.score, 3)}
            for p in seen.proposals
        ],
        "lists": [
            render_fields(entry, "name", entries="n_entries", matched="n_found")
            | {"category": entry.category or None}
            | {"absent": [[gone.position, gone.label, gone.reason] for gone in entry.absent]}
            for entry in seen.lists
        ],
        "unmatched": [[w.artist, w.title, w.count] for w in seen.unmatched],
        "replaces": [old.id for old in seen.replaces],
        "overlaps": [old.id for old in seen.overlaps],
    }


def _show(result: dict[str, Any]) -> None:
    number = result["import"]
    head = "nothing was written (dry run)" if number is None else f"import {number}"
    typer.echo(
        f"{head}: {result['format']}, {count(result['rows'], 'row')} with {count(result['songs'], 'song')}; "
        f"{count_are(result['matched'], 'song')} in the library."
    )
    if result.get("recording_ids"):
        typer.echo(f"MusicBrainz recording ids: added to {count(result['recording_ids'], 'song')}.")
    for entry in result["lists"][:_MAX_LISTED]:
        echo(f"playlist {entry['name']}: {entry['matched']} of {count_are(entry['entries'], 'song')} in the library.")
    if len(result["lists"]) > _MAX_LISTED:
        typer.echo(f"{len(result['lists']) - _MAX_LISTED} more playlists; --json lists all of them.")
    for entry in result["skipped"]:
        places = "; ".join(entry["places"][:3])
        echo(f"left out: {entry['count']} ({entry['reason']}): {places}")
    for close in result["close"][:_MAX_LISTED]:
        echo(
            f"close ({close['score']:.2f}): {close['artist']}, {close['title']} — is it {close['label']} "
            f"(song {close['song']})?"
        )
    missed = result["unmatched"]
    for artist, title, n in missed[:_MAX_LISTED]:
        echo(f"not in the library: {artist}, {title} ({n})")
    if len(missed) > _MAX_LISTED:
        typer.echo(f"not in the library: {len(missed) - _MAX_LISTED} more; --json lists all of them.")
    for verb in ("replaces", "overlaps"):
        if result[verb]:
            typer.echo(f"{verb} import {', '.join(map(str, result[verb]))}")


def imports(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Examples:
    musicsim imports
    musicsim imports --json
    """
    with open_library(library) as lib:
        entries, n_waiting = lib.listening.imports(), len(lib.listening.list_unmatched())
    if as_json:
        emit({"imports": [_entry_json(entry) for entry in entries], "unmatched": n_waiting})
        return
    rows = [
        (
            *(e.id, day_of(e.created_at), e.name, e.format, e.listener, e.n_rows, e.n_songs, e.n_matched),
            *(day_of(e.first_at) or "", day_of(e.last_at) or ""),
        )
        for e in entries
    ]
    names = ["import", "date", "files", "format", "listener", "rows", "songs", "matched", "from", "to"]
    show(names, rows, empty="Nothing was imported. Import plays, tags or playlists with `musicsim import FILE`.")
    if rows:
        typer.echo(f"{count_are(n_waiting, 'imported song')} not in the library.")


def _entry_json(entry: ImportEntry) -> dict[str, Any]:
    return {
        **render_fields(entry, "id", "kind", "format", files="name", skipped="n_skipped", **_COUNTS),
        "listener": entry.listener or None,
        "date": day_of(entry.created_at),
        "first": day_of(entry.first_at),
        "last": day_of(entry.last_at),
    }
