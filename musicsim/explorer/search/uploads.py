"""Sound that is sent to a server to search with: decoded in a worker, its beginning only unless more is asked for."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from musicsim import audio
from musicsim.errors import AudioError, LibraryError
from musicsim.explorer.search.query import model_to_compare_with
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.processes.decoding import Decoding, Run, decoder
from musicsim.public import is_public
from musicsim.storage import writing_to

_MAX_MB = 200  # as server.maxUploadSize in .streamlit/config.toml
VISITORS_MB = 20
"""Of one upload of a visitor of a public demonstration."""
_VISITORS_MINUTES, _VISITORS_SECONDS = 15.0, 60.0
MINUTES = 20.0
"""Of sound that are analysed of an upload unless more are asked for."""
MAX_MINUTES = 600.0
"""That can be asked for: the frames come into the server's memory, 8 MB an hour."""


def max_mb() -> int:
    """How many MB one upload may have."""
    return VISITORS_MB if is_public() else _MAX_MB


def decode_upload(
    snapshot: Snapshot, source: Path | bytes, name: str, minutes: float = MINUTES, *, visitor: str = ""
) -> Decoding["audio.Sound"]:
    """Start to decode a file or a recording in a worker process; the result has its coefficients.

    Limits of time and memory are those of the library that will be searched, and bytes are written to a temporary
    file in its folder. `name` is what messages call it; of its beginning `minutes` are decoded, MAX_MINUTES at most.
    Visitors of a public demonstration have lower limits and take turns, by the address in `visitor`.

    Raises ModelError if the library has no model yet; AudioError if the file is too large.
    """
    model_to_compare_with(snapshot)
    size = source.stat().st_size if isinstance(source, Path) else len(source)
    if size > max_mb() << 20:
        raise AudioError(f"{name}: the file is larger than {max_mb()} MB. Send a part of it.")
    folder, limits = snapshot.library.folder, snapshot.library.file_limits

    def work(run: Run) -> "audio.Sound":
        with scratch_of(folder).folder() as scratch:
            path = source if isinstance(source, Path) else _written(scratch / "upload", source)
            frames = scratch / "frames.npy"
            sound = run(audio.analyse_sound, path, name=name, frames_to=frames, duration=60 * minutes)
            sound = replace(sound, mfcc=np.load(frames))
        if sound.is_cut:
            part = "minute was" if minutes == 1 else f"{minutes:g} minutes were"
            sound = replace(sound, notes=(*sound.notes, f"Only the first {part} analysed."))
        return sound

    if is_public():
        minutes, limits = min(minutes, _VISITORS_MINUTES), replace(limits, seconds=_VISITORS_SECONDS)
    else:
        visitor = ""  # all files come from the owner: first come, first served
    return decoder().ask(work, name=name, limits=limits, visitor=visitor)


def _written(path: Path, data: bytes) -> Path:
    with writing_to(path):
        path.write_bytes(data)
    return path


def warm_up(library: Library) -> None:
    """Start the workers, and remove what a server that was killed has left of uploads."""
    decoder().warm_up()
    with suppress(LibraryError):  # said to whoever sends a file
        scratch_of(library.folder)
