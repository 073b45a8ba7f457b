"""Zip archives from untrusted sources: checked before they are used, and unpacked up to a limit.

The limit applies to the unpacked size, because a harmless file can have the compression ratio of a zip bomb.
"""

import errno
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from musicsim.storage import writing_to

DAMAGED: tuple[type[Exception], ...] = (
    ValueError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OverflowError, MemoryError
)  # fmt: skip
"""Errors, in addition to OSError, that reading a damaged archive can raise."""
_IS_ENCRYPTED = 0x1
_MAX_NAME = 512
_MAX_ARRAYS = 10_000  # per file
_CHUNK = 1 << 20
_MAX_MESSAGE = 200
_END, _LARGE_END = b"PK\x05\x06", b"PK\x06\x07"
_END_SIZE, _LARGE_END_SIZE = 22, 20


@contextmanager
def open_archive(path: Path, max_members: int) -> Iterator[zipfile.ZipFile]:
    """Open an archive and check its list of members.

    Raises ValueError for too many, repeated, encrypted or special members, and for unsupported compression methods.
    """
    if not path.is_file():  # opening a pipe would block
        raise ValueError("it is not a file")
    _check_directory(path, max_members)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive.infolist(), max_members)
            yield archive
    except OSError as error:
        if error.errno == errno.EINVAL:  # zipfile sought a position before the start of the file
            raise ValueError("its list of parts is damaged") from error
        raise


def check_arrays_are_stored(folder: Path) -> None:
    """Raise ValueError for a damaged or compressed array file below the folder; compressed arrays may exceed memory."""
    for path in folder.glob("**/*.npz"):
        with open_archive(path, _MAX_ARRAYS) as archive:
            if sum(part.file_size for part in archive.infolist()) > path.stat().st_size:
                raise ValueError(f"{path.name} is compressed")


def _check_members(members: Sequence[zipfile.ZipInfo], max_members: int) -> None:
    if len(members) > max_members:
        raise ValueError(f"it has more than {max_members:,} parts")
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two of its parts have the same name")
    if any(member.flag_bits & _IS_ENCRYPTED for member in members):
        raise ValueError("it is locked with a password")
    if any(stat.S_IFMT(m.external_attr >> 16) not in (0, stat.S_IFREG) for m in members):
        raise ValueError("one of its parts is a link, a folder or a device")
    if any(m.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for m in members):
        raise ValueError("it uses a compression method that musicsim does not support")


def _check_directory(path: Path, max_members: int) -> None:
    """Raise ValueError for a huge list of members, because zipfile reads the whole list into memory."""
    with path.open("rb") as stream:
        start = max(0, path.stat().st_size - _END_SIZE - _LARGE_END_SIZE)
        stream.seek(start)
        tail = stream.read()
    end = tail[-_END_SIZE:]
    if len(end) < _END_SIZE or not end.startswith(_END) or end[-2:] != b"\0\0":
        raise ValueError("it is not an archive, or it is incomplete")
    if _LARGE_END in tail[:-_END_SIZE]:
        raise ValueError("it is too large for this kind of file")
    (n_bytes,) = struct.unpack_from("<L", end, 12)
    if n_bytes > max_members * (zipfile.sizeCentralDir + _MAX_NAME):  # type: ignore[attr-defined]
        raise ValueError(f"it has more than {max_members:,} parts")


def shorten_message(error: object) -> str:
    """Return an error message as one short line; some messages have several lines or quote bytes from the file."""
    message = " ".join(str(error).split()).rstrip(".")
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"


def unpack(archive: zipfile.ZipFile, name: str, target: Path, max_bytes: int) -> None:
    """Write a member to a file. Raises ValueError if its declared or actual size exceeds `max_bytes`."""
    too_large = ValueError(f"{name} is larger than {max_bytes >> 20:,} MB")
    if archive.getinfo(name).file_size > max_bytes:
        raise too_large
    left = max_bytes
    with archive.open(name) as packed, writing_to(target), target.open("wb") as out:
        while block := packed.read(_CHUNK):
            left -= len(block)
            if left < 0:
                raise too_large
            out.write(block)
