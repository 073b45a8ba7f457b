"""Files of music: where they are, and the name of their bytes."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.errors import LibraryError

__all__ = ["absolute", "audio_files", "content_hash"]


def content_hash(source: Path | bytes) -> str:
    """Name of a file's bytes: 32 hexadecimal digits of BLAKE2b."""
    if isinstance(source, bytes):
        return hashlib.blake2b(source, digest_size=16).hexdigest()
    with source.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def absolute(source: str | Path) -> Path:
    """The path without ``~`` and ``..``; links are kept, so that a library follows what was named."""
    return Path(os.path.abspath(Path(source).expanduser()))


def audio_files(sources: Iterable[Path]) -> list[Path]:
    """Audio files below the sources, each once, in the order of their names.

    A file named on purpose is taken whatever its ending; in folders the ending decides
    (:data:`musicsim.audio.AUDIO_EXTENSIONS`), and hidden files and folders are left out.

    Raises
    ------
    LibraryError
        If a source does not exist.
    """
    found: dict[Path, None] = {}
    for source in sources:
        if source.is_dir():
            for folder, folders, names in os.walk(source):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(names):
                    path = Path(folder, name)
                    if path.suffix.lower() in AUDIO_EXTENSIONS and not name.startswith("."):
                        found[path] = None
        elif source.exists():
            found[source] = None
        else:
            raise LibraryError(f"{source}: there is no such file or folder. Check the spelling of the path.")
    return list(found)
