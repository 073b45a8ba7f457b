"""Import librosa, whose loops numba compiles, in one process at a time."""

import getpass
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType


@cache
def import_librosa() -> ModuleType:
    """Return librosa, with the parts that the program uses loaded.

    The first import after an installation compiles functions and keeps them in files. If two processes do that at once,
    the files can contradict each other, and each later process crashes: https://github.com/numba/numba/issues/10128.

    Examples
    --------
    >>> from musicsim.audio import import_librosa
    >>> float(import_librosa().hz_to_midi(440.0))
    69.0
    """
    from filelock import FileLock

    with FileLock(Path(tempfile.gettempdir()) / f"musicsim-librosa-{getpass.getuser()}.lock"):
        import librosa
        import librosa.beat
        import librosa.effects
        import librosa.feature
        import librosa.onset
    return librosa
