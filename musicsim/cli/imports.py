"""Commands on what people listened to: import it, list imports and what did not match."""

from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli._console import JsonOption, LibraryOption, emit, errors, open_library, plain, progress_bar, show

_MAX_LISTED = 20


def import_listening(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files, folders or .zip archives of plays, of tags or of playlists.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    as_format: Annotated[str | None, typer.Option("--as", help="The files' format, if it is ambiguous.")] = None,
    listener: Annotated[
        str | None, typer.Option(help='Who listened, if the files do not say; "me" by default.')
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="utf-8, utf-16, latin-1 or cp1252, if the files are not UTF-8.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; write nothing.")] = False,
    accept: Annotated[
        float | None, typer.Option(min=0, max=1, help="Also accept close spellings with at least this score.")
    ] = None,
    undo: Annotated[int | None, typer.Option(help="Undo the import with this number.")] = None,
) -> None:
    """Import plays, tags and playlists from other programs and services.

    Last.fm, ListenBrainz, Spotify, Libre.fm, Maloja, Pano Scrobbler, Spinitron, the Million Song Dataset,
    the library.db of beets, playlists of players (M3U, PLS, XSPF, JSPF), and your own CSV files. Songs are
    found by the path of their file, by MusicBrainz id, then by artist and title. Unmatched plays and tags
    are kept and matched later. The same file again takes the place of the first time.
    """
    if (undo is None) == (not files):
        raise typer.BadParameter("name files to import, or an import to --undo")
    with open_library(library) as lib:
        if undo is not None:
            from musicsim.library.importing import undo as take_back

            entry = take_back(lib, undo)
            emit(_entry(entry)) if as_json else typer.echo(f"import {entry.id} ({plain(entry.name)}) is undone.")
            return
        seen, done = _import(lib, files or [], as_format, listener, encoding, None if dry_run else accept or 2.0)
    result = _preview(seen) | {"import": done.import_id if done else None, "dry_run": dry_run}
    if done:
        result |= {"matched": done.n_matched, "recording_ids": done.n_recording_ids}
    emit(result) if as_json else _tell(result)


def _import(
    lib: Any, files: list[Path], fmt: str | None, listener: str | None, encoding: str | None, accept_from: float | None
) -> tuple[Any, Any]:
    """The preview, and the report of what was written; nothing is where `accept_from` is None."""
    from musicsim.library.importing import commit, preview, read_listening

    with progress_bar() as report:

        def tell(done: int, total: int, message: str) -> bool | None:
            return report(done=done, total=total, message=message)

        try:
            batch = read_listening(files, fmt, listener, tell, encoding=encoding)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        seen = preview(lib, batch, tell)
        if accept_from is None:
            return seen, None
        tell(0, 0, "writing")
        done = commit(lib, seen, [p for p in seen.proposals if p.score >= accept_from])
        if batch.kind == "playlists":
            _learn(lib, tell)
    return seen, done


def _learn(lib: Any, tell: Any) -> None:
    """Let the playlist walk learn from the lists that have come."""
    from musicsim.errors import StoreLockedError
    from musicsim.explorer.playlists.fit import refit_walks

    try:
        refit_walks(lib, lambda message, done=0, total=0: tell(done, total, message))
    except StoreLockedError:
        errors.print("Another job is running: new playlists will use these lists after the next scan.")


def _preview(seen: Any) -> dict[str, Any]:
    from musicsim.library.importing import day_of

    return {
        "kind": seen.batch.kind,
        "format": seen.format,
        "rows": seen.n_rows,
        "plays": seen.n_plays,
        "songs": seen.n_songs,
        "matched": seen.n_matched,
        "matched_by": seen.songs_by,
        "listeners": seen.listeners,
        "first": day_of(seen.batch.first_at),
        "last": day_of(seen.batch.last_at),
        "skipped": [{"reason": s.reason, "count": s.count, "places": s.places} for s in seen.skipped],
        "close": [
            {
                "artist": p.song.artist,
                "title": p.song.title,
                "song": p.song_id,
                "label": p.label,
                "score": round(p.score, 3),
                "count": p.count,
            }
            for p in seen.proposals
        ],
        "lists": [
            {
                "name": entry.name,
                "category": entry.category or None,
                "entries": entry.n_entries,
                "matched": entry.n_found,
                "absent": [[gone.position, gone.label, gone.reason] for gone in entry.absent],
            }
            for entry in seen.lists
        ],
        "unmatched": [[w.artist, w.title, w.count] for w in seen.unmatched],
        "replaces": [old.id for old in seen.replaces],
        "overlaps": [old.id for old in seen.overlaps],
    }


def _tell(result: dict[str, Any]) -> None:
    """An import for people."""
    number = result["import"]
    head = "nothing was written (dry run)" if number is None else f"import {number}"
    typer.echo(
        f"{head}: {result['format']}, {result['rows']} rows of {result['songs']} songs; "
        f"{result['matched']} songs are in the library."
    )
    if result.get("recording_ids"):
        typer.echo(f"{result['recording_ids']} songs got the MusicBrainz id of their recording.")
    for entry in result["lists"][:_MAX_LISTED]:
        typer.echo(
            f"playlist {plain(entry['name'])}: {entry['matched']} of {entry['entries']} songs are in the library."
        )
    if len(result["lists"]) > _MAX_LISTED:
        typer.echo(f"{len(result['lists']) - _MAX_LISTED} more playlists; --json lists all.")
    for entry in result["skipped"]:
        places = "; ".join(entry["places"][:3])
        typer.echo(f"left out: {entry['count']} ({plain(entry['reason'])}): {plain(places)}")
    for close in result["close"][:_MAX_LISTED]:
        typer.echo(
            f"close ({close['score']:.2f}): {plain(close['artist'])}, {plain(close['title'])} — is it "
            f"{plain(close['label'])} (song {close['song']})?"
        )
    missed = result["unmatched"]
    for artist, title, count in missed[:_MAX_LISTED]:
        typer.echo(f"not in the library: {plain(artist)}, {plain(title)} ({count})")
    if len(missed) > _MAX_LISTED:
        typer.echo(f"not in the library: {len(missed) - _MAX_LISTED} more; --json lists all.")
    for verb in ("replaces", "overlaps"):
        if result[verb]:
            typer.echo(f"{verb} import {', '.join(map(str, result[verb]))}")


def imports(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List imports, latest first, and how many of their songs are not in the library."""
    from musicsim.library.importing import day_of

    with open_library(library) as lib:
        entries, n_waiting = lib.listening.imports(), lib.listening.unmatched_count()
    if as_json:
        emit({"imports": [_entry(entry) for entry in entries], "unmatched": n_waiting})
        return
    rows = [
        (
            *(e.id, day_of(e.created_at), e.name, e.format, e.listener, e.n_rows, e.n_songs, e.n_matched),
            *(day_of(e.first_at) or "", day_of(e.last_at) or ""),
        )
        for e in entries
    ]
    show(["import", "date", "files", "format", "listener", "rows", "songs", "matched", "from", "to"], rows)
    typer.echo(f"{n_waiting} songs that were imported are not in the library.")


def _entry(entry: Any) -> dict[str, Any]:
    from musicsim.library.importing import day_of

    return {
        "id": entry.id,
        "files": entry.name,
        "kind": entry.kind,
        "format": entry.format,
        "listener": entry.listener or None,
        "date": day_of(entry.created_at),
        "rows": entry.n_rows,
        "songs": entry.n_songs,
        "matched": entry.n_matched,
        "plays": entry.n_plays,
        "skipped": entry.n_skipped,
        "first": day_of(entry.first_at),
        "last": day_of(entry.last_at),
    }
