"""Daily mixes as M3U8 files, and on connected servers.

The hook ``playlist_servers`` is ``function(library: Library) -> Mapping[str, PlaylistServer]``, keyed by the names of
connected servers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from musicsim.errors import MusicsimError
from musicsim.extensions.daily.options import DailySettings
from musicsim.extensions.daily.store import Mix, Run, Written
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.media.playlist_files import m3u8

_NOT_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00-\x1f]+')
_ENDING = ".m3u8"
_MAX_NAME = 100  # characters of a file name; file systems allow 255 bytes


class PlaylistServer(Protocol):
    """A server that stores playlists. Both methods raise MusicsimError if the server refuses or does not answer."""

    def save(self, name: str, song_ids: Sequence[int], comment: str) -> None:
        """Write a playlist, which replaces the one with this name that this library wrote."""

    def delete(self, name: str) -> None:
        """Delete a playlist that this library wrote."""


def playlist_servers(library: Library) -> dict[str, PlaylistServer]:
    """Return the connected servers, keyed by name."""
    return {name: server for servers in load_hooks("playlist_servers") for name, server in servers(library).items()}


def publish(library: Library, mixes: Sequence[Mix], before: Run | None, settings: DailySettings) -> Written:
    """Write mixes to the folder and the servers of the settings, and remove the other copies of the run `before`."""
    files: list[str] = []
    sent: list[tuple[str, str]] = []
    problems: list[str] = []
    paths = _paths(settings.folder, mixes)
    for path, mix in paths.items():
        with _note(problems):
            _write(library, path, mix)
            files.append(str(path))
    old = before.written if before else Written()
    for path in sorted(set(map(Path, old.files)) - set(paths)):
        with _note(problems):
            if path.suffix == _ENDING:  # a damaged library deletes no other files
                path.unlink(missing_ok=True)
    servers = playlist_servers(library) if settings.servers or old.sent else {}
    for server in settings.servers:
        for mix in mixes:
            with _note(problems):
                _send(servers, server, mix)
                sent.append((server, mix.name))
    wanted = {(server, mix.name) for server in settings.servers for mix in mixes}
    for server, name in sorted(set(old.sent) - wanted):
        with _note(problems):
            if server in servers:
                servers[server].delete(name)
    return Written(tuple(files), tuple(sent), tuple(problems))


@contextmanager
def _note(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except (MusicsimError, OSError, ValueError) as error:
        problems.append(str(error))


def _paths(folder: str, mixes: Iterable[Mix]) -> dict[Path, Mix]:
    """Return the file of each mix; none without a folder."""
    return {Path(folder, f"{_NOT_IN_NAMES.sub('', mix.name)[:_MAX_NAME]}{_ENDING}"): mix for mix in mixes if folder}


def _write(library: Library, path: Path, mix: Mix) -> None:
    content = m3u8(mix.name, library.songs_in_order(mix.song_ids))
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def _send(servers: Mapping[str, PlaylistServer], server: str, mix: Mix) -> None:
    if server not in servers:
        raise MusicsimError(f"{server}: this music server is not connected. Choose another one for daily mixes.")
    servers[server].save(mix.name, mix.song_ids, mix.why)
