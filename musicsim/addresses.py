"""Music at fsspec addresses: ``s3://bucket/song.flac``, ``sftp://host/music``, ``https://...``.

The library stores an address as the path ``s3:/bucket/song.flac``, because paths collapse double slashes. Code that
reads music calls :func:`resolve_address` first. Some fsspec protocols run code or read local files, and an address may
come from a restored library. So only the protocols in :data:`PROTOCOLS` are allowed.
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
from operator import itemgetter
from pathlib import Path
from typing import Any

from musicsim.extras import install_command
from musicsim.web import is_page, list_links, web_options

PROTOCOLS = ("s3", "gs", "abfs", "https", "http", "sftp", "smb", "webdav")  # allowed protocols
_ADDRESS = re.compile(r"(?!file:)([a-z][a-z0-9+.-]+):/+([^/].*)", re.DOTALL)
_HOST_WITH_USER = re.compile(r"(?!file:)([a-z][a-z0-9+.-]+)(:/+)([^/]*)@", re.DOTALL)
_USER_IN_TEXT = re.compile(r"\b([a-z][a-z0-9+.-]+)(:/+)([^/\s]*)@", re.IGNORECASE)
_BLOCK, _MAX_BLOCKS = 1 << 20, 32  # bytes per read, and blocks cached per file
_MAX_REASON = 300  # characters
_TIMES = ("mtime", "LastModified", "last_modified", "modified", "created")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a path looks like an address, even if :func:`explain_refusal` rejects it."""
    return _ADDRESS.fullmatch(os.fspath(path)) is not None


def resolve_address(path: Path) -> Path:
    """Return a RemotePath for an address, and any other path unchanged."""
    return RemotePath(path) if is_address(path) else path


def has_user(path: str | os.PathLike[str]) -> bool:
    """Return whether an address contains a user name or password."""
    match = _HOST_WITH_USER.match(os.fspath(path))
    return match is not None and _is_user(match)


def strip_user(path: str) -> str:
    """Return an address without its user name and password, and any other path unchanged."""
    return _HOST_WITH_USER.sub(_remove_user, path, count=1) if "@" in path else path


def strip_users(text: str) -> str:
    """Remove user names and passwords from all addresses in a string."""
    return _USER_IN_TEXT.sub(_remove_user, text) if "@" in text else text


def _is_user(match: re.Match[str]) -> bool:
    return match[1] != "abfs" or ":" in match[3]  # Azure addresses have the form abfs://container@account


def _remove_user(match: re.Match[str]) -> str:
    return match[1] + match[2] if _is_user(match) else match[0]


def explain_refusal(path: str | os.PathLike[str]) -> str | None:
    """Explain why an address is not allowed, without showing its password; return None for all other paths."""
    match = _ADDRESS.fullmatch(os.fspath(path))
    if match is None:
        return None
    protocol, shown = match[1], strip_user(os.fspath(path))
    if protocol not in PROTOCOLS:
        return (
            f"{shown}: {protocol} addresses are not supported. Copy the files to this machine, or use "
            f"{', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]}."
        )
    if has_user(path):
        name = protocol.upper()
        remedy = (
            f"""FSSPEC_{name}='{{"headers": {{"Authorization": "Basic ..."}}}}'"""
            if protocol in ("http", "https")
            else f"FSSPEC_{name}_USERNAME and FSSPEC_{name}_PASSWORD"
        )
        return (
            f"{shown}: the address contains a user name or password, which anyone with access to the library could "
            f"read. Leave it out and set {remedy} in the environment or in fsspec's configuration (~/.config/fsspec)."
        )
    if "::" in match[2]:
        return f"{shown}: chains of addresses (::) are not supported. Unpack or copy the files first."
    return None


@dataclass(frozen=True, slots=True)
class RemoteStat:
    """Size and time of a remote file; if the server reports only a version, the time is a hash of the version."""

    st_size: int
    st_mtime_ns: int
    st_mode: int = stat.S_IFREG | 0o444


class RemotePath(type(Path())):  # type: ignore[misc]
    """A read-only path at an address. Up to 32 blocks of 1 MB are cached in memory; nothing is written to disk."""

    _last_stat: RemoteStat | None = None

    def stat(self, *, follow_symlinks: bool = True) -> Any:
        """Ask the server for the file's size and time."""
        with _as_os_errors():
            system, name = _file_system(self)
            system.invalidate_cache()
            self._last_stat = _stat(system.info(name))
            return self._last_stat

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the file may exist: True if the server does not respond, False if the address is refused."""
        if explain_refusal(self) is not None:
            return False
        try:
            with _as_os_errors():
                system, name = _file_system(self)
                system.invalidate_cache()
                return bool(system.exists(name))
        except OSError:
            return True

    def open(self, *_: Any, **__: Any) -> Any:  # bytes only; remote files are never read as text
        """Open the file for reading bytes; blocks of the most recently opened file are cached."""
        with _as_os_errors():
            return io.BufferedReader(_View(_open(str(self), self._last_stat or self.stat())))

    def files(self, is_wanted: Callable[[Path], bool] = lambda _: True) -> Iterator[tuple[Path, RemoteStat]]:
        """Yield the wanted files below a folder, or the file itself, each with its size and time."""
        with _as_os_errors():
            system, name = _file_system(self)
            system.invalidate_cache()
            about = system.info(name) if _is_web(self) else None  # on a web server, a folder is an HTML page
            if not (system.isdir(name) if about is None else is_page(about)):
                yield Path(self), _stat(about or system.info(name))
                return
            infos: dict[str, Any]
            if about is None:
                infos = {file[len(name) :].strip("/"): info for file, info in system.find(name, detail=True).items()}
            else:
                infos = dict.fromkeys(list_links(system, name, about))
            for file, info in sorted(infos.items(), key=itemgetter(0)):
                path = Path(self, *file.split("/"))
                if is_wanted(path):
                    has_size = info and info.get("size") is not None
                    yield path, _stat(info if has_size else system.info(f"{name.rstrip('/')}/{file}"))


def _is_web(path: Path) -> bool:
    return os.fspath(path).startswith(("http:", "https:"))


def _file_system(path: Path) -> tuple[Any, str]:
    """Return the fsspec file system for an address, and the file's name in that file system."""
    if (reason := explain_refusal(path)) is not None:
        raise OSError(reason)
    match = _ADDRESS.fullmatch(os.fspath(path))
    assert match is not None
    try:
        import fsspec

        return fsspec.url_to_fs(f"{match[1]}://{match[2]}", **(web_options() if _is_web(path) else {}))
    except ImportError as error:
        raise OSError(f"{error}. Install fsspec with {install_command('cluster')}") from error


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Convert errors from fsspec and its protocols to OSError, without user names and passwords."""
    try:
        yield
    except Exception as error:
        # fsspec reports every web server error as a missing file; the real error is its cause
        cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ else error
        text = str(cause)
        if isinstance(cause, OSError) and cause.errno is not None and strip_users(text) == text:
            raise cause from error.__cause__
        raise _as_os_error(cause) from error


def _as_os_error(error: BaseException) -> OSError:
    status = getattr(error, "status", None)
    if status is not None and hasattr(error, "request_info"):
        kind = FileNotFoundError if status in (404, 410) else OSError
        return kind(f"the server responded with {status} {_short(getattr(error, 'message', ''))}")
    message = _short(error)
    if isinstance(error, TimeoutError):
        return TimeoutError(message or "the server took too long to respond")
    if isinstance(error, FileNotFoundError):  # its message is only the address
        return FileNotFoundError("this file or folder does not exist")
    return OSError(message if isinstance(error, OSError) else f"{type(error).__name__}: {message}")


def _short(error: object) -> str:
    """Return an error message as one line, without user names; the text may come from the server."""
    return strip_users(" ".join(str(error).split()))[:_MAX_REASON]


def _stat(info: Any) -> RemoteStat:
    if info.get("size") is None:
        raise OSError("the server does not report the file's size, so the file cannot be read in parts")
    time = next((info[name] for name in _TIMES if info.get(name) is not None), None)
    if time is None:
        version = str(info.get("ETag") or info.get("etag") or "")
        return RemoteStat(info["size"], zlib.crc32(version.encode()))
    seconds = time.timestamp() if hasattr(time, "timestamp") else float(time)
    return RemoteStat(info["size"], round(seconds * 1e9))


@functools.lru_cache(maxsize=1)
def _open(path: str, status: RemoteStat) -> Any:
    """Open a file; its version `status` is part of the cache key."""
    system, name = _file_system(Path(path))
    size = {"size": status.st_size} if _is_web(Path(path)) else {}  # saves a second request for the size
    return system.open(
        name, "rb", block_size=_BLOCK, cache_type="blockcache", cache_options={"maxblocks": _MAX_BLOCKS}, **size
    )


class _View(io.RawIOBase):
    """A reader with its own position in a shared open file."""

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
