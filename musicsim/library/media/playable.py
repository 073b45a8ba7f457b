"""Cached copies of songs for browsers that cannot play the file itself."""

import os
import re
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from musicsim import audio
from musicsim.library.disk.room import make_room
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.library import Library
from musicsim.library.processes.decoding import Decoder, Decoding, Run
from musicsim.library.stores.songs import Song
from musicsim.public import working_folder

_MAX_BYTES = 2 << 30
_COPY = re.compile(r"[0-9a-f]{32}\.(mp3|wav)")


class PlayableCopies:
    """Converted copies in the library's ``cache`` folder; the least recently used are deleted beyond `max_bytes`."""

    def __init__(self, decoder: Decoder, max_bytes: int = _MAX_BYTES) -> None:
        self._decoder, self._max_bytes = decoder, max_bytes
        self._lock = threading.Lock()
        self._running: dict[Path, Decoding[Path]] = {}

    def copy_of(self, library: Library, song: Song) -> Path | Decoding[Path]:
        """Return the converted copy of a song, or the task that is making it. All requests share that task."""
        target = working_folder(library.folder) / "cache" / f"{song.content_hash}{audio.transcode_suffix()}"
        with self._lock:
            with suppress(FileNotFoundError):
                os.utime(target)  # the file system may not store access times
                return target
            decoding = self._running.get(target)
            if decoding is None or decoding.future.done():
                work = partial(self._make, folder=library.folder, source=song.path, target=target)
                limits = library.file_limits
                decoding = self._decoder.ask(work, name=str(song.path), limits=limits, is_urgent=True)
                self._running[target] = decoding
            decoding.keep()
        return decoding

    def _make(self, run: Run, folder: Path, source: Path, target: Path) -> Path:
        try:
            # a scratch folder on the same disk, so that the move is atomic; it is also removed if the worker is killed
            with scratch_of(folder).folder() as scratch:
                copy = run(audio.transcode, source, scratch / target.name)
                target.parent.mkdir(parents=True, exist_ok=True)
                with self._lock:
                    make_room(target.parent, _COPY, copy.stat().st_size, self._max_bytes)
                    copy.replace(target)
        finally:
            with self._lock:
                self._running.pop(target, None)
        return target
