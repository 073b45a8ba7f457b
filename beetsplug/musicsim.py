"""beets plugin for similar songs, playlists and tags: ``beet similar``, ``beet simlist`` and ``beet simtags``.

beets items and musicsim songs are matched by their file paths. Set ``plugins: musicsim`` in the beets configuration.
For a library other than musicsim's default one, also set ``musicsim: {library: FOLDER}``.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from beets import ui
from beets.dbcore.query import PathQuery
from beets.plugins import BeetsPlugin

_MAX_EXAMPLES = 20


class MusicsimPlugin(BeetsPlugin):
    """Plugin with three commands; it imports musicsim only when one of them runs."""

    def __init__(self) -> None:
        super().__init__()
        self.config.add({"library": ""})

    def commands(self) -> list[ui.Subcommand]:
        """Return the commands ``similar``, ``simlist`` and ``simtags``."""
        similar = ui.Subcommand("similar", help="list the songs that sound most like the songs matching a query")
        similar.parser.add_option("-n", "--number", type="int", default=10, help="number of songs (10)")
        similar.func = self._similar
        simlist = ui.Subcommand("simlist", help="generate a playlist that begins with the song matching a query")
        simlist.parser.add_option("--minutes", type="float", help="length in minutes; an hour by default")
        simlist.func = self._simlist
        for command in (similar, simlist):
            command.parser.usage = f"%prog {command.name} QUERY [options]"
            command.parser.add_path_option()
            command.parser.add_format_option()
        return [similar, simlist, self._make_simtags()]

    def _make_simtags(self) -> ui.Subcommand:
        simtags = ui.Subcommand("simtags", help="set the tempo (bpm) and key (initial_key) of the items in a query")
        add = simtags.parser.add_option
        simtags.parser.usage = "%prog simtags QUERY [options]"
        add("-r", "--replace", action="store_true", help="also replace values that the items already have")
        add("-p", "--pretend", action="store_true", help="show the changes without making them")
        add("-y", "--yes", action="store_true", help="skip the question")
        add("-w", "--write", action="store_true", default=None, help="also write the files (default: as in beets)")
        add("-W", "--nowrite", action="store_false", dest="write", help="change only the library of beets")
        simtags.func = self._simtags
        return simtags

    def _similar(self, lib: Any, opts: Any, args: Sequence[str]) -> None:
        from musicsim.explorer.requests.search import SearchRequest
        from musicsim.explorer.search.requested import find_requested
        from musicsim.explorer.snapshot.snapshot import take_snapshot

        with self._library() as library:
            first, *others = self._song_ids(lib, library, args)
            request = SearchRequest(k=opts.number, like=tuple(others))
            hits = find_requested(take_snapshot(library), first, request)
            lines = [(hit.song, f"{hit.similarity:.2f}") for hit in hits]
            self._show(lib, library, lines, opts)

    def _simlist(self, lib: Any, opts: Any, args: Sequence[str]) -> None:
        from musicsim.explorer.playlists.walk import Walk
        from musicsim.explorer.requests.playlist import PlaylistRequest
        from musicsim.explorer.snapshot.snapshot import take_snapshot

        with self._library() as library:
            ids = self._song_ids(lib, library, args)
            named = {"first": ids[0]} if len(ids) == 1 else {"like": tuple(ids)}
            drawn = Walk(take_snapshot(library)).generate(PlaylistRequest(minutes=opts.minutes, **named))
            self._show(lib, library, [(song, "") for song in drawn.songs], opts)
            for note in drawn.notes:
                self._log.warning("{}", note)

    def _simtags(self, lib: Any, opts: Any, args: Sequence[str]) -> None:
        with self._library() as library:
            songs = {song.id: song for song in library.songs()}
            song_at = {path: songs[song_id] for song_id, path in library.files.here()}
        changed = []
        for item in lib.items(args):
            song = song_at.get(Path(os.fsdecode(item.path)))
            if song is None:
                self._log.warning("not in the musicsim library: {}", item)
                continue
            tempo = None if song.tempo is None else round(song.tempo)
            key = None if song.key is None else song.key + "m" * (song.mode == "minor")
            for name, value in (("bpm", tempo), ("initial_key", key)):
                if value is not None and (opts.replace or not item[name]):
                    item[name] = value
            if ui.show_model_changes(item):
                changed.append(item)
        if opts.pretend or not changed:
            return
        if not opts.yes:
            changed = ui.input_select_objects("Really change", changed, ui.show_model_changes)
        with lib.transaction():
            for item in changed:
                item.try_sync(ui.should_write(opts.write), False)

    @contextmanager
    def _library(self) -> Iterator[Any]:
        """Open the configured musicsim library; raise its errors as beets errors."""
        from musicsim.errors import MusicsimError
        from musicsim.explorer.libraries import default_folder
        from musicsim.library import Library

        named = self.config["library"].get()
        try:
            with Library.open(Path(named) if named else default_folder(), create=False) as library:
                yield library
        except (MusicsimError, ValueError) as error:
            raise ui.UserError(f"musicsim: {error}") from error

    def _song_ids(self, lib: Any, library: Any, query: Sequence[str]) -> list[int]:
        """Return the ids of the musicsim songs that match a beets query."""
        items = list(lib.items(query))
        if len(items) > _MAX_EXAMPLES:
            raise ui.UserError(
                f"the query matches {len(items)} items: use a query that matches at most {_MAX_EXAMPLES}"
            )
        found = {item: library.files.song_at(Path(os.fsdecode(item.path))) for item in items}
        for item in (item for item, song_id in found.items() if song_id is None):
            self._log.warning("not in the musicsim library: {}", item)
        ids = [song_id for song_id in found.values() if song_id is not None]
        if not ids:
            raise ui.UserError(f"no song in the musicsim library {library.folder} matches the query")
        return ids

    def _show(self, lib: Any, library: Any, lines: Sequence[tuple[Any, str]], opts: Any) -> None:
        """Print the beets items of songs, each after its similarity; with a format option, only in that format."""
        paths = library.files.paths_of(song.id for song, _ in lines)
        for song, lead in lines:
            found = (lib.items(PathQuery("path", bytes(path))).get() for path in paths.get(song.id, ()))
            item = next((item for item in found if item is not None), None)
            if item is None:
                self._log.warning("not in the beets library: {}", song.path)
            else:
                ui.print_(f"{item}" if opts.path or opts.format or not lead else f"{lead}  {item}")
