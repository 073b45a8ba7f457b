"""Music at addresses of fsspec: ``s3://bucket/song.flac``, ``sftp://host/music``, ``https://...``.

An address is kept as the path ``s3:/bucket/song.flac``: two slashes are one in a path, and no absolute path of this
machine begins like that. Code that reads music calls :func:`located`, which returns a path that opens at the address.

fsspec knows many more protocols. Some of them run what they find, read files of this machine, or chain others, and
an address may come from a restored library; so :data:`PROTOCOLS` lists those that are used.
"""

import functools
import io
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from musicsim._web import is_page, list_links, web_options

PROTOCOLS = ("s3", "gs", "abfs", "https", "http", "sftp", "smb", "webdav")
"""Protocols of addresses that are read."""

_WEB = ("http", "https")
_ADDRESS = re.compile(r"(?!file:)([a-z][a-z0-9+.-]+):/+([^/].*)", re.DOTALL)
_HOST_WITH_USER = re.compile(r"(?!file:)([a-z][a-z0-9+.-]+)(:/+)([^/]*)@", re.DOTALL)
_USER_IN_TEXT = re.compile(r"\b([a-z][a-z0-9+.-]+)(:/+)([^/\s]*)@", re.IGNORECASE)
_BLOCK, _MAX_BLOCKS = 1 << 20, 32  # bytes that are read at a time, and how many of these are held of one file
_MAX_REASON = 300  # characters
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "created")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Tell an address from a path of this machine, by its form alone; see :func:`refusal`."""
    return _ADDRESS.fullmatch(os.fspath(path)) is not None


def located(path: Path) -> Path:
    """Return the path itself, or for an address one that opens and asks there."""
    return RemotePath(path) if is_address(path) else path


def has_user(path: str | os.PathLike[str]) -> bool:
    """Tell if an address names a user or a password."""
    match = _HOST_WITH_USER.match(os.fspath(path))
    return match is not None and _is_user(match)


def without_user(path: str) -> str:
    """Return an address without its user and password, and any other path unchanged."""
    return _HOST_WITH_USER.sub(_bare, path, count=1) if "@" in path else path


def text_without_users(text: str) -> str:
    """Return a text without the users and passwords of the addresses in it."""
    return _USER_IN_TEXT.sub(_bare, text) if "@" in text else text


def text_has_user(text: str) -> bool:
    """Tell if an address in a text names a user or a password."""
    return text_without_users(text) != text


def _is_user(match: re.Match[str]) -> bool:
    """Tell a user from a container: Azure has abfs://container@account."""
    return match[1] != "abfs" or ":" in match[3]


def _bare(match: re.Match[str]) -> str:
    return match[1] + match[2] if _is_user(match) else match[0]


def refusal(path: str | os.PathLike[str]) -> str | None:
    """Say in one sentence why an address is not read; None if it is, and for paths of this machine.

    Nothing is asked or opened. The sentence leaves passwords out.
    """
    match = _ADDRESS.fullmatch(os.fspath(path))
    if match is None:
        return None
    protocol, shown = match[1], without_user(os.fspath(path))
    if protocol not in PROTOCOLS:
        return (
            f"{shown}: {protocol} addresses are not read. Copy the files to this machine, or use "
            f"{', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]}."
        )
    if has_user(path):
        name = protocol.upper()
        remedy = (
            f"""FSSPEC_{name}='{{"headers": {{"Authorization": "Basic ..."}}}}'"""
            if protocol in _WEB
            else f"FSSPEC_{name}_USERNAME and FSSPEC_{name}_PASSWORD"
        )
        return (
            f"{shown}: the address holds a user name or password, which others could read in the library. Leave it "
            f"out, and set {remedy} in the environment or in fsspec's configuration (~/.config/fsspec)."
        )
    if "::" in match[2]:
        return f"{shown}: chains of addresses (::) are not read. Unpack or copy the files first."
    return None


@dataclass(frozen=True, slots=True)
class RemoteStat:
    """Size and time of a file; the time is made of the name of its version if only that is known."""

    st_size: int
    st_mtime_ns: int
    st_mode: int = stat.S_IFREG | 0o444


class RemotePath(type(Path())):  # type: ignore[misc]
    """A path of an address, as far as reading goes.

    The file is read in blocks of 1 MB, of which 32 are held; nothing of it is written to a disk.

    Raises OSError if the address is refused or cannot be read, or if its protocol is not installed.
    """

    _seen: RemoteStat | None = None  # as of the last stat()

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        """Ask the server for size and time."""
        with _as_os_errors():
            system, name = _found(self)
            system.invalidate_cache()
            self._seen = _stat(self, system.info(name))
            return self._seen

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Tell if the file may exist: True if its server cannot be asked, False if the address is refused."""
        if refusal(self) is not None:
            return False
        try:
            with _as_os_errors():
                system, name = _found(self)
                system.invalidate_cache()
                return bool(system.exists(name))
        except OSError:
            return True

    def open(self, *_: Any, **__: Any) -> Any:  # for bytes only: nothing reads a remote file as text
        """Open it for reading bytes; the blocks of the last file that was opened are read once."""
        with _as_os_errors():
            return io.BufferedReader(_View(_opened(str(self), self._seen or self.stat())))

    def files(self, is_wanted: Callable[[Path], bool] = lambda _: True) -> Iterator[tuple[Path, RemoteStat]]:
        """Yield the wanted files below a folder, or the file itself, with size and time."""
        with _as_os_errors():
            system, name = _found(self)
            system.invalidate_cache()
            if _is_web(self):
                yield from self._web_files(system, name, is_wanted)
                return
            if not system.isdir(name):
                yield Path(self), _stat(self, system.info(name))
                return
            for found, about in sorted(system.find(name, detail=True).items()):
                path = Path(self, *found[len(name) :].strip("/").split("/"))
                if is_wanted(path):
                    yield path, _stat(path, about if about.get("size") is not None else system.info(found))

    def _web_files(
        self, system: Any, name: str, is_wanted: Callable[[Path], bool]
    ) -> Iterator[tuple[Path, RemoteStat]]:
        """Do as :meth:`files` does: a web server says by the kind of a page whether it is a folder."""
        info = system.info(name)
        if not is_page(info):
            yield Path(self), _stat(self, info)
            return
        for link in sorted(list_links(system, name, info)):
            path = Path(self, *link.split("/"))
            if is_wanted(path):
                yield path, _stat(path, system.info(f"{name.rstrip('/')}/{link}"))


def _is_web(path: Path) -> bool:
    return os.fspath(path).startswith(tuple(f"{protocol}:" for protocol in _WEB))


def _found(path: Path) -> tuple[Any, str]:
    """The file system of an address, and the file's name there."""
    if (why := refusal(path)) is not None:
        raise OSError(why)
    match = _ADDRESS.fullmatch(os.fspath(path))
    assert match is not None
    try:
        import fsspec

        options = web_options() if _is_web(path) else {}
        return fsspec.url_to_fs(f"{match[1]}://{match[2]}", **options)
    except ImportError as error:
        raise OSError(f"{error}. pip install 'musicsim[cluster]' brings fsspec") from error


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn errors of the libraries that ask there into OSError, without users and passwords."""
    try:
        yield
    except Exception as error:
        # fsspec calls any trouble with a web server a missing file, caused by the trouble
        cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ else error
        if isinstance(cause, OSError) and cause.errno is not None and not text_has_user(str(cause)):
            raise cause from error.__cause__
        raise _as_os_error(cause) from error


def _as_os_error(error: BaseException) -> OSError:
    status = getattr(error, "status", None)
    if status is not None and hasattr(error, "request_info"):
        kind = FileNotFoundError if status in (404, 410) else OSError
        return kind(f"its server answers {status} {_short(getattr(error, 'message', ''))}")
    said = _short(error)
    if isinstance(error, TimeoutError):
        return TimeoutError(said or "its server takes too long to answer")
    if isinstance(error, FileNotFoundError):  # its text is the address alone
        return FileNotFoundError("there is no such file or folder")
    return OSError(said if isinstance(error, OSError) else f"{type(error).__name__}: {said}")


def _short(error: object) -> str:
    """Put an error of another library into one line without users; a server may write into it."""
    return text_without_users(" ".join(str(error).split()))[:_MAX_REASON]


def _stat(path: Path, info: Any) -> RemoteStat:
    if info.get("size") is None:
        raise OSError("its server does not say how long it is, so it cannot be read in parts")
    time = next((info[name] for name in _TIMES if info.get(name) is not None), None)
    if time is None:
        version = str(info.get("ETag") or info.get("etag") or "")
        return RemoteStat(info["size"], zlib.crc32(version.encode()))
    seconds = time.timestamp() if hasattr(time, "timestamp") else float(time)
    return RemoteStat(info["size"], round(seconds * 1e9))


@functools.lru_cache(maxsize=1)
def _opened(path: str, as_it_is: RemoteStat) -> Any:
    system, name = _found(Path(path))
    # with its size, a web server is not asked for it a second time
    known = {"size": as_it_is.st_size} if _is_web(Path(path)) else {}
    return system.open(
        name, "rb", block_size=_BLOCK, cache_type="blockcache", cache_options={"maxblocks": _MAX_BLOCKS}, **known
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
