"""Commands on the collection: add and scan music, see what is there and what is not, correct it."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli._console import (
    SOME_FAILED,
    JsonOption,
    LibraryOption,
    clock,
    emit,
    open_library,
    plain,
    progress_bar,
    show,
    show_failures,
    song_json,
    warn,
    whole,
)
from musicsim.cli._options import taking
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.listing import ListRequest, in_order

_Retry = Annotated[bool, typer.Option("--retry", help="Try files again that failed before.")]
_Anyway = Annotated[bool, typer.Option("--anyway", help="Add short and silent files, too.")]
_Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, help="Worker processes; one per core by default.")
]
_Ids = Annotated[list[int], typer.Argument(help="Ids of songs, as `musicsim list` shows them.")]


def add(
    sources: Annotated[list[Path] | None, typer.Argument(help="Folders and files of music.")] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    retry: _Retry = False,
    anyway: _Anyway = False,
    workers: _Workers = None,
    shortest: Annotated[
        float | None,
        typer.Option(min=0, help=("Skip files shorter than this many seconds. Saved as a setting of the library.")),
    ] = None,
) -> None:
    """Add folders or files, then update the model and the map.

    Songs that are in the library and have not changed are not analysed again. A file given by name is
    added however short it is.
    """
    from musicsim.explorer.pools import pooled
    from musicsim.explorer.refresh.add_music import add_and_refresh

    if not sources:
        raise typer.BadParameter("name a folder or a file.")
    with open_library(library, create=True) as lib:
        if shortest is not None:
            lib.set_setting("shortest_s", shortest)
        with pooled(lib), progress_bar() as report:
            done = add_and_refresh(lib, sources, retry=retry, anyway=anyway, n_workers=workers, report=report)
        _tell(lib, done, sources, as_json)


def scan(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders to scan; all of the library by default.")
    ] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    workers: _Workers = None,
) -> None:
    """Scan the library's folders again for new, changed, moved and missing files."""
    from musicsim.explorer.pools import pooled
    from musicsim.explorer.refresh.add_music import scan_again

    with open_library(library) as lib:
        with pooled(lib), progress_bar() as report:
            done = scan_again(lib, folders or (), n_workers=workers, report=report)
        _tell(lib, done, folders or lib.files.roots(), as_json)


def _tell(lib: Any, report: Any, sources: list[Path], as_json: bool) -> None:
    """What came of a scan; leaves with exit code 3 where files failed."""
    from musicsim.library.stores.files import SKIPPED, absolute, is_below

    below = [absolute(source) for source in sources]
    listed = [f for f in lib.files.failures() if any(is_below(f.path, place) for place in below)]
    failures = [f for f in listed if f.kind not in SKIPPED]
    result = {
        "library": str(lib.folder),
        "added": report.n_added,
        "unchanged": report.n_unchanged,
        "known": report.n_known,
        "ignored": report.n_ignored,
        "missing": report.n_missing,
        "back": report.n_back,
        "absent": [str(path) for path in report.absent],
        "songs": len(lib),
        "failed": [_failure_json(f) for f in failures],
        "skipped": [_failure_json(f) for f in listed if f.kind in SKIPPED],
    }
    if as_json:
        emit(result)
    else:
        words = {
            "known": "recognised by their sound",
            "ignored": "excluded by .musicsimignore",
            "missing": "missing",
            "back": "found again",
        }
        also = [f"{result[name]} {word}" for name, word in words.items() if result[name]]
        typer.echo(", ".join([f"{report.n_added} songs added", *also]) + f"; {len(lib)} in the library.")
        for path in report.absent:
            warn("not found", path)
        show_failures(listed)
    if failures:
        raise typer.Exit(SOME_FAILED)


def _failure_json(failure: Any) -> dict[str, str]:
    return {"path": str(failure.path), "reason": failure.reason, "kind": failure.kind}


def demo(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    seed: Annotated[int, typer.Option(help="A different seed composes different music.")] = 0,
) -> None:
    """Compose the demo collection, add it, and import its listeners, tags and playlists."""
    from musicsim.explorer.refresh.add_music import build_demo

    with open_library(library, create=True) as lib:
        with progress_bar() as report:
            build_demo(lib, seed=seed, report=report)
        counts = {"library": str(lib.folder), **lib.counts()}
    if as_json:
        emit(counts)
    else:
        typer.echo(f"{counts['songs']} songs and {counts['playlists']} playlists. See them: musicsim app")


@taking(ListRequest)
def list_songs(
    request: ListRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    search: Annotated[str, typer.Option("--search", "-s", help="Part of a title or artist.")] = "",
) -> None:
    """List the songs of the library."""
    with open_library(library) as lib:
        songs = in_order((song for song in lib.songs() if song.matches(search)), request)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    heads = ["id", "title", "artist", "album", "year", "genre", "length", "tempo", "key", "LUFS", "bright", "energy"]
    rows = [
        (
            *(s.id, s.title, s.artist or "", s.album or "", s.year or "", s.genre or "", clock(s.duration_s)),
            *(whole(s.tempo), s.key_words, whole(s.loudness), whole(s.brightness), whole(s.energy)),
        )
        for s in songs
    ]
    show(heads, rows)


def failed(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List files that were not added, each with its reason: failed or skipped."""
    from musicsim.library.stores.files import SKIPPED

    with open_library(library) as lib:
        failures = lib.files.failures()
    if as_json:
        emit([_failure_json(f) for f in failures])
    else:
        for failure in failures:
            typer.echo(plain(failure.reason))
    if any(f.kind not in SKIPPED for f in failures):
        raise typer.Exit(SOME_FAILED)


def missing(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    forget_all: Annotated[
        bool, typer.Option("--forget", help="Remove them, with their plays, tags and playlist entries.")
    ] = False,
) -> None:
    """List songs whose files are missing. They return with their plays and playlists when a file is found again."""
    with open_library(library) as lib:
        songs = lib.missing_songs()
        if forget_all:
            lib.files.forget_songs(song.id for song in songs)
    if as_json:
        emit([song_json(song) for song in songs])
        return
    for song in songs:
        typer.echo(f"{song.id}  {plain(song.label)}  {plain(str(song.path))}")
    if forget_all:
        typer.echo(f"{len(songs)} song{'s' * (len(songs) != 1)} removed.")


def duplicates(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    part: Annotated[tuple[int, int] | None, typer.Option(help="Two ids: these are different songs after all.")] = None,
    join: Annotated[tuple[int, int] | None, typer.Option(help="Two ids: undo a --part.")] = None,
) -> None:
    """List duplicate songs; results and playlists show only the first of each group."""
    from musicsim.explorer.snapshot.same_sound import groups

    with open_library(library) as lib:
        for pair, is_same in ((part, False), (join, True)):
            if pair is not None and not lib.duplicates.judge(pair, is_same=is_same):
                raise NotFoundError(f"{pair[0]} and {pair[1]} were not found to be the same sound.")
        found = groups(lib.songs(), lib.duplicates.pairs())
    if as_json:
        emit([[song_json(song) for song in group] for group in found])
        return
    rows = [
        (number, song.id, song.title, song.by, clock(song.duration_s), song.path)
        for number, group in enumerate(found, 1)
        for song in group
    ]
    show(("group", "id", "title", "artist", "length", "file"), rows)


def artists(
    library: LibraryOption = None,
    as_json: JsonOption = False,
    merge: Annotated[list[str] | None, typer.Option(help="A spelling; give it once for each.")] = None,
    into: Annotated[str | None, typer.Option(help="The artist that the spellings stand for.")] = None,
    part: Annotated[str | None, typer.Option(help="An artist: undo its merge.")] = None,
) -> None:
    """List artists that probably have several spellings, and merge them."""
    with open_library(library) as lib:
        if merge:
            if not into:
                raise typer.BadParameter("name the artist to merge them into: --into NAME")
            lib.edits.merge(merge, into)
        if part:
            lib.edits.part(part)
        groups, aliases = lib.edits.suggestions(), lib.edits.aliases()
    if as_json:
        emit({"suggestions": [[g.suggested, list(g.names)] for g in groups], "merged": aliases})
        return
    for group in groups:
        typer.echo(f"{plain(group.suggested)}: {plain(', '.join(group.names))}")
    for spelling, artist in aliases.items():
        typer.echo(f"merged: {plain(spelling)} stands for {plain(artist)}")


def edit(
    songs: _Ids,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    title: str | None = None,
    artist: str | None = None,
    album_artist: str | None = None,
    album: str | None = None,
    track: int | None = None,
    year: int | None = None,
    genre: str | None = None,
    undo: Annotated[bool, typer.Option("--undo", help="Reset to the files' tags.")] = False,
) -> None:
    """Edit tags of songs in the library; the files are not changed. An empty text clears a tag."""
    given = {
        "title": title,
        "artist": artist,
        "album_artist": album_artist,
        "album": album,
        "track": track,
        "year": year,
        "genre": genre,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    with open_library(library) as lib:
        for song_id in songs:
            lib.song(song_id)  # says which one is not there before anything is changed
        if undo:
            lib.edits.undo(songs)
        if changes:
            try:
                lib.edits.edit(songs, changes)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
        edited = lib.songs(songs, missing=True)
    if as_json:
        emit([song_json(song) for song in edited])
    else:
        for song in edited:
            typer.echo(f"{song.id}  {plain(song.label)}")


def forget(
    folder: Annotated[Path, typer.Argument(help="A folder of the library, as `musicsim info` lists it.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a folder and its songs from the library; the music files are not touched."""
    from musicsim.library.stores.files import absolute

    with open_library(library) as lib:
        root = absolute(folder)
        if root not in lib.files.roots():
            raise NotFoundError(f"{root} is not a folder of this library: `musicsim info` lists them.")
        n_songs = lib.files.forget_root(root)
    if as_json:
        emit({"folder": str(root), "forgotten": n_songs})
    else:
        typer.echo(f"{n_songs} song{'s' * (n_songs != 1)} removed.")


def settings(
    name: Annotated[str | None, typer.Argument(help="A setting; all are listed without one.")] = None,
    value: Annotated[str | None, typer.Argument(help="Its new value.")] = None,
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show or change the library's settings."""
    with open_library(library) as lib:
        if name is not None and value is not None:
            try:
                is_text = isinstance(lib.settings.get(name), str)
                lib.set_setting(name, value if is_text else json.loads(value))
            except ValueError as error:  # which json's own error is, too
                raise typer.BadParameter(f"{name} {value}: {error}") from error
        stored = lib.settings
    if name is not None:
        if name not in stored:
            raise typer.BadParameter(f"there is no setting {name}: choose from {', '.join(stored)}")
        stored = {name: stored[name]}
    if as_json:
        emit(stored)
    else:
        for key, setting in stored.items():
            typer.echo(f"{key} {json.dumps(setting)}")


def info(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Show what the library holds, which model is in use, and what is running."""
    from musicsim.explorer import jobs
    from musicsim.explorer.refresh.outdated import pending_upgrade

    with open_library(library) as lib:
        record, job = lib.models.active(), jobs.current(lib)
        facts = {"library": str(lib.folder), **lib.counts(), "roots": [str(root) for root in lib.files.roots()]}
        facts["model"] = record and {
            "id": record.id,
            "name": record.name,
            "features": record.n_features,
            "dimensions": record.n_dimensions,
            "fitted_on_songs": record.n_songs_fitted,
        }
        upgrade = pending_upgrade(lib)
        facts["upgrade"] = upgrade and upgrade.words
        facts["job"] = job and {"kind": job.kind, "state": job.state, "done": job.done, "total": job.total}
    if as_json:
        emit(facts)
        return
    show((), [(name, f"{value:.2f}" if isinstance(value, float) else value) for name, value in facts.items()])
