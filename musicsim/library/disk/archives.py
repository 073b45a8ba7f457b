"""Zip archives from elsewhere: looked at before they are believed, unpacked no further than is allowed.

How well a part is packed says nothing of its honesty: the principal axes of a small collection are the identity, which
packs a thousand times smaller, as only a bomb does elsewhere. So what counts is what a part unpacks to.
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

DAMAGED = (ValueError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, OverflowError, MemoryError)
"""What reading a damaged archive may raise beside OSError."""
_IS_ENCRYPTED = 0x1
_MAX_NAME = 512
_MAX_ARRAYS = 10_000  # per file
_CHUNK = 1 << 20
_MAX_SAID = 200
_END, _LARGE_END = b"PK\x05\x06", b"PK\x06\x07"
_END_SIZE, _LARGE_END_SIZE = 22, 20


@contextmanager
def open_archive(path: Path, max_members: int) -> Iterator[zipfile.ZipFile]:
    """Open an archive whose list of members has been checked.

    Raises ValueError if it is no archive, has more members than that, two of one name, or some that are no plain files,
    encrypted, or packed in another way than by deflation; OSError if it cannot be read.
    """
    if not path.is_file():  # a pipe would be waited for
        raise ValueError("it is not a file")
    _check_directory(path, max_members)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive.infolist(), max_members)
            yield archive
    except OSError as error:
        if error.errno == errno.EINVAL:  # how a place before the start of the file is refused
            raise ValueError("its list of parts is damaged") from error
        raise


def check_arrays_are_stored(folder: Path) -> None:
    """Check the arrays of an unpacked library, without reading them.

    musicsim writes arrays without compression. Compressed ones could unpack to more than the memory holds.

    Raises ValueError if a file of arrays below the folder is compressed or damaged; OSError if it cannot be read.
    """
    for path in folder.glob("**/*.npz"):
        with open_archive(path, _MAX_ARRAYS) as archive:
            if sum(part.file_size for part in archive.infolist()) > path.stat().st_size:
                raise ValueError(f"{path.name} is packed")


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
        raise ValueError("it is packed in a way that this program does not use")


def _check_directory(path: Path, max_members: int) -> None:
    """Refuse a list of members that would take much memory: zipfile reads the whole of it, whatever its length."""
    with path.open("rb") as stream:
        start = max(0, path.stat().st_size - _END_SIZE - _LARGE_END_SIZE)
        stream.seek(start)
        tail = stream.read()
    end = tail[-_END_SIZE:]
    if len(end) < _END_SIZE or not end.startswith(_END) or end[-2:] != b"\0\0":
        raise ValueError("it is not an archive, or an incomplete one")
    if _LARGE_END in tail[:-_END_SIZE]:
        raise ValueError("it is larger than such a file can be")
    (n_bytes,) = struct.unpack_from("<L", end, 12)
    if n_bytes > max_members * (zipfile.sizeCentralDir + _MAX_NAME):  # type: ignore[attr-defined]
        raise ValueError(f"it has more than {max_members:,} parts")


def in_short(error: object) -> str:
    """What a library says of a damaged file, in one line: some messages have several, or quote the bytes they met."""
    said = " ".join(str(error).split()).rstrip(".")
    return said if len(said) <= _MAX_SAID else f"{said[:_MAX_SAID]}…"


def unpack(archive: zipfile.ZipFile, name: str, target: Path, max_bytes: int) -> None:
    """Write a member to a file, and no more than so many bytes of it.

    Raises ValueError if it is larger: its stated size is checked first, its true size while it is written;
    StorageError if it cannot be written.
    """
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
