"""Decode sound that was uploaded for a search, in a worker and by default only its beginning."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from musicsim import audio
from musicsim.errors import AudioError, LibraryError
from musicsim.explorer.search.query import networks_in_use
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, scratch_of
from musicsim.library.processes.decoding import Decoding, Run, decoder
from musicsim.public import is_public
from musicsim.storage import writing_to

_MAX_MB = 200  # the same as server.maxUploadSize in .streamlit/config.toml
VISITORS_MB = 20  # maximum size of a visitor's upload
_VISITORS_MINUTES, _VISITORS_SECONDS = 15.0, 60.0  # limits for visitors: minutes of sound, seconds of work
_SHORT_MINUTES = 1.0  # longer files of visitors are decoded after the short ones
MINUTES = 20.0  # minutes of an upload that are analyzed by default
MAX_MINUTES = 600.0  # maximum that can be requested, because the frames are in memory (8 MB per hour)


def max_mb() -> int:
    """Return the maximum size of an upload in MB."""
    return VISITORS_MB if is_public() else _MAX_MB


def decode_upload(
    snapshot: Snapshot, source: Path | bytes, name: str, minutes: float = MINUTES, *, visitor: str = ""
) -> Decoding["audio.Sound"]:
    """Start decoding the first `minutes` of a file or recording in a worker; the result includes its MFCCs.

    The library's limits apply; for visitors, they are lower. Visitors with different addresses (`visitor`) take turns.
    Bytes are written to a temporary file in the library's folder. Messages use `name`. Raises ModelError if the library
    has no model, and AudioError if the file is too large.
    """
    networks = networks_in_use(snapshot)
    size = source.stat().st_size if isinstance(source, Path) else len(source)
    if size > max_mb() << 20:
        raise AudioError(f"{name}: the file is larger than {max_mb()} MB. Upload only a part of it.")
    folder, limits = snapshot.library.folder, snapshot.library.file_limits

    def decode(run: Run, minutes: float) -> "audio.Sound":
        with scratch_of(folder).folder() as scratch:
            path = source if isinstance(source, Path) else scratch / "upload"
            if isinstance(source, bytes):
                with writing_to(path):
                    path.write_bytes(source)
            frames = scratch / "frames.npy"
            sound = run(
                audio.analyze_sound, path, name=name, frames_to=frames, duration=60 * minutes, networks=networks
            )
            return replace(sound, mfcc=np.load(frames))

    def work(run: Run) -> "audio.Sound":
        sound = decode(run, minutes)
        if sound.is_cut:
            part = "minute was" if minutes == 1 else f"{minutes:g} minutes were"
            sound = replace(sound, notes=(*sound.notes, f"Only the first {part} analyzed."))
        return sound

    def short_work(run: Run) -> "audio.Sound | None":
        sound = decode(run, _SHORT_MINUTES)
        return None if sound.is_cut else sound

    if not is_public():  # all uploads come from the owner, who does not wait for a turn
        return decoder().ask(work, name=name, limits=limits)
    minutes, limits = min(minutes, _VISITORS_MINUTES), replace(limits, seconds=_VISITORS_SECONDS)
    return decoder().ask(
        work, name=name, limits=limits, visitor=visitor, short_work=short_work if minutes > _SHORT_MINUTES else None
    )


def warm_up(library: Library) -> None:
    """Start the workers, and delete uploads that a killed server left behind."""
    decoder().warm_up()
    with suppress(LibraryError):  # the next upload reports the error
        scratch_of(library.folder)
