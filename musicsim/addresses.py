"""Files that lie elsewhere, at addresses of fsspec: ``s3://bucket/song.flac``, ``sftp://host/music``, ``https://...``.

An address is kept as the path ``s3:/bucket/song.flac``: two slashes are one in a path, and no absolute path of this
machine begins like that. Wherever music is read, :func:`located` makes of such a path one that opens there.
"""

import functools
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r"(?!file:)([a-z][a-z0-9+.-]+):/+([^/].*)", re.DOTALL)
_BLOCK, _MAX_BLOCKS = 1 << 20, 32  # bytes that are read at a time, and how many of these are held of one file
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "created")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a path stands for an address."""
    return _ADDRESS.fullmatch(os.fspath(path)) is not None


def located(path: Path) -> Path:
    """The path where a file is: itself, or for an address one that opens and asks there."""
    return RemotePath(path) if is_address(path) else path


@dataclass(frozen=True, slots=True)
class RemoteStat:
    """What is asked of a file; the time, where only a name of the version is known, is made of that."""

    st_size: int
    st_mtime_ns: int
    st_mode: int = stat.S_IFREG | 0o444


class RemotePath(type(Path())):  # type: ignore[misc]
    """A path of an address, as far as reading goes.

    The file is read in blocks of 1 MB, of which 32 are held; nothing of it is written to a disk.

    Raises OSError where it cannot be read, or its protocol is not installed.
    """

    _seen: RemoteStat | None = None  # what was heard last

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        """Size and time, as they are there at this moment."""
        with _as_os_errors():
            system, name = _found(self)
            system.invalidate_cache()
            self._seen = _stat(self, system.info(name))
            return self._seen

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is there."""
        with _as_os_errors():
            system, name = _found(self)
            system.invalidate_cache()
            return bool(system.exists(name))

    def open(self, *_: Any, **__: Any) -> Any:  # the whole of it would be read as text by nobody
        """Open it for reading bytes; the blocks of the last file that was opened are read once."""
        with _as_os_errors():
            return io.BufferedReader(_View(_opened(str(self), self._seen or self.stat())))

    def files(self) -> Iterator[tuple[Path, RemoteStat]]:
        """All files below, or itself if it is one."""
        with _as_os_errors():
            system, name = _found(self)
            system.invalidate_cache()
            if not system.isdir(name):  # what HTTP has may be both, and says that it is a file
                yield Path(self), _stat(self, system.info(name))
                return
            for found, about in sorted(system.find(name, detail=True).items()):
                path = Path(self, *found[len(name) :].strip("/").split("/"))
                yield path, _stat(path, about if about.get("size") is not None else system.info(found))


def _found(path: Path) -> tuple[Any, str]:
    """The file system of an address, and what it calls the file."""
    match = _ADDRESS.fullmatch(os.fspath(path))
    assert match is not None
    try:
        import fsspec

        return fsspec.url_to_fs(f"{match[1]}://{match[2]}")
    except ImportError as error:
        raise OSError(f"{error}. pip install 'musicsim[cluster]' brings fsspec") from error


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Let errors of whatever library asks there be errors of reading."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


def _stat(path: Path, info: Any) -> RemoteStat:
    if info.get("size") is None:
        raise OSError(f"{path}: its server does not say how long it is, and so cannot be read in parts")
    time = next((info[name] for name in _TIMES if info.get(name) is not None), None)
    if time is None:
        version = str(info.get("ETag") or info.get("etag") or "")
        return RemoteStat(info["size"], zlib.crc32(version.encode()))
    seconds = time.timestamp() if hasattr(time, "timestamp") else float(time)
    return RemoteStat(info["size"], round(seconds * 1e9))


@functools.lru_cache(maxsize=1)
def _opened(path: str, _as_it_is: RemoteStat) -> Any:
    system, name = _found(Path(path))
    return system.open(
        name, "rb", block_size=_BLOCK, cache_type="blockcache", cache_options={"maxblocks": _MAX_BLOCKS}
    )


class _View(io.RawIOBase):
    """A place in an open file that others read, too."""

    def __init__(self, file: Any) -> None:
        self._file, self._at = file, 0
        self._size = file.seek(0, os.SEEK_END)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(origin + offset, 0)
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        with _as_os_errors():
            self._file.seek(self._at)
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
