"""The ``musicsim playlist`` and ``musicsim dialects`` commands."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from musicsim.cli.console import JsonOption, LibraryOption, ModelOption, emit, open_library, show
from musicsim.cli.matching import nothing_matches, warn_about_words
from musicsim.cli.options import take_request
from musicsim.errors import NotFoundError
from musicsim.explorer import GeneratedPlaylist, PlaylistRequest, Snapshot, Walk, find_allowed_rows, snapshot_under
from musicsim.explorer.rendering import render_steps
from musicsim.hooks import FindSongsNamed
from musicsim.library import GENERATED, OWN_PLAYLISTS, PLAYLIST_FORMATS, Library, Song, atomic_path, find_ending
from musicsim.library.media.playlist_files import missing
from musicsim.registry import load_hooks
from musicsim.wording import count

_MAX_NAMED = 20
_OUTPUTS = "musicsim.cli.playlist.outputs"  # key in the context of a command

SavedOption = Annotated[
    str | None,
    typer.Option(
        "--saved", help="Name or id of a saved playlist to use instead of a generated one.", metavar="PLAYLIST"
    ),
]

SaveOption = Annotated[
    str | None, typer.Option(help="Save the playlist in the library under this name; replaces one with this name.")
]
ExportOption = Annotated[
    Path | None, typer.Option("--export", "-o", help="Also save the playlist to a .m3u8, .pls, .xspf or .jspf file.")
]
RelativeOption = Annotated[bool, typer.Option("--relative", help="Write paths relative to the exported file.")]


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that an extension's option writes for a generated playlist."""

    name: str  # key in the JSON output
    target: Path | None
    write: Callable[[Library, Sequence[Song]], list[str]]  # returns notes for the user


def note_output(context: typer.Context, output: OutputFile) -> None:
    """Make the `playlist` command of this context write an additional file."""
    context.meta.setdefault(_OUTPUTS, []).append(output)


@dataclass(frozen=True, slots=True)
class PlaylistSongs:
    """The songs of a saved or generated playlist, and notes on options that could not be fulfilled."""

    songs: Sequence[Song]
    notes: Sequence[str] = ()
    details: Mapping[str, Any] | None = field(default_factory=lambda: GENERATED)  # as in SavedPlaylist


@take_request(PlaylistRequest)
def playlist(
    context: typer.Context,
    request: PlaylistRequest,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    export: ExportOption = None,
    relative: RelativeOption = False,
    save: SaveOption = None,
    model: ModelOption = None,
) -> None:
    """Examples:
    musicsim playlist --first 12 --through 7 --save Evening
    musicsim playlist --minutes 90 --words calm -o calm.m3u8
    """
    if export:
        find_ending(export)  # raises an error before anything is generated
    seed = secrets.randbelow(2**31) if request.seed is None else request.seed
    with open_library(library) as lib:
        generated = _generate(snapshot_under(lib, model), request, seed, as_json=as_json)
        outputs: list[OutputFile] = context.meta.get(_OUTPUTS, [])
        notes = [*generated.notes, *(note for output in outputs for note in output.write(lib, generated.songs))]
        notes += save_playlist(lib, save, generated.songs, {"seed": seed})
    if export:
        notes += export_playlist(generated.songs, export, is_relative=relative)
    files = {"file": export, **{output.name: output.target for output in outputs}}
    _show(generated, seed, notes, as_json=as_json, files=files)


def _generate(
    snapshot: Snapshot, request: PlaylistRequest, seed: int | None, *, as_json: bool = False
) -> GeneratedPlaylist:
    """Generate a playlist; raise NotFoundError if no song matches, with `as_json` after an empty JSON output."""
    warn_about_words(snapshot, request)
    generated = Walk(snapshot).generate(request, seed, effects=as_json)
    if not generated.songs:
        if as_json:
            emit({"seed": seed, "songs": [], "minutes": 0.0, "notes": generated.notes})
        raise nothing_matches(snapshot, request, lambda other: int(find_allowed_rows(snapshot, other).sum()))
    return generated


def load_or_generate(library: Library, request: PlaylistRequest, saved: str | None, model: str | None) -> PlaylistSongs:
    """Return a saved playlist by name or id, or generate one; raise NotFoundError if nothing is found."""
    if saved is None:
        generated = _generate(snapshot_under(library, model), request, request.seed)
        return PlaylistSongs(generated.songs, generated.notes)
    lists = library.playlists()
    chosen = next((p for p in lists if p.name == saved), None) or next((p for p in lists if str(p.id) == saved), None)
    if chosen is None:
        for find in load_hooks(FindSongsNamed):
            if (songs_named := find(library, saved, model)) is not None:
                return PlaylistSongs(songs_named)
        problem = f"the playlist {saved!r} is not in the library {library.folder.name!r}"
        if not lists:
            raise NotFoundError(f"{problem}, which has no playlists. Save one: musicsim playlist --save NAME.")
        known = ", ".join(f"“{p.name}” ({p.id})" for p in lists[:_MAX_NAMED])
        raise NotFoundError(f"{problem}. It has {count(len(lists), 'playlist')}, such as {known}.")
    return PlaylistSongs(library.songs_in_order(chosen.song_ids), details=chosen.details)


def save_playlist(
    library: Library, name: str | None, songs: Sequence[Song], details: Mapping[str, Any] | None
) -> list[str]:
    """Save songs in the library, with the details of their playlist, if `name` is given; return a note about it."""
    if not name:
        return []
    library.add_playlists([(name, None, [song.id for song in songs], details)], source=OWN_PLAYLISTS)
    return [f"Saved as “{name}”."]


def export_playlist(songs: Sequence[Song], target: Path, *, is_relative: bool) -> list[str]:
    """Write songs to a playlist file; return a note for each song whose file is missing."""
    path = target.expanduser().absolute()
    render = PLAYLIST_FORMATS[find_ending(path)]
    content = render(target.stem, songs, relative_to=path.parent if is_relative else None)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)
    return [f"its file is missing: {song.label}" for song in missing(songs)]


def _show(
    generated: GeneratedPlaylist, seed: int, notes: list[str], *, as_json: bool, files: Mapping[str, Path | None]
) -> None:
    if as_json:
        songs = render_steps(generated.songs, generated.steps_as_json(), with_files=True)
        named = {name: str(path) if path else None for name, path in files.items()}
        emit({"seed": seed, "songs": songs, "minutes": generated.duration_s / 60, "notes": notes, **named})
        return
    caption = [f"{generated.duration_s / 60:.0f} minutes, seed {seed}", *notes]
    steps = zip(generated.songs, generated.reasons, strict=True)
    rows = [(n, song.id, song.title, song.artist or "", reason or "") for n, (song, reason) in enumerate(steps, 1)]
    show(("", "id", "title", "artist", "reached because"), rows, caption=caption)


def dialects(library: LibraryOption = None, as_json: JsonOption = False, model: ModelOption = None) -> None:
    """Examples:
    musicsim dialects
    musicsim dialects --json
    """
    with open_library(library) as lib:
        walk = Walk(snapshot_under(lib, model))
        rows: list[dict[str, Any]] = [
            {"name": d.name or None, "n_playlists": d.n_playlists, "gain": d.gain, "gain_global": d.gain_global,
             "families": dict(walk.families(d.name))}
            for d in walk.dialects
        ]  # fmt: skip
    if as_json:
        emit(rows)
        return
    if not rows:
        typer.echo("This library has no playlists to learn from. Import some with `musicsim import`.")
        return
    lines = []
    for row in rows:
        gains = ("" if row[name] is None else f"{row[name]:.1%}" for name in ("gain", "gain_global"))
        goes_by = ", ".join(f"{words} {share:.0%}" for words, share in list(row["families"].items())[:4])
        lines.append((row["name"] or "all playlists", row["n_playlists"], *gains, goes_by))
    show(("kind", "playlists", "gain", "gain with common weights", "uses"), lines)
