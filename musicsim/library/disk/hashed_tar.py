"""A tar archive that is written and read in one pass, and whose last member holds the hashes of all others.

``sha256sum --check`` reads these, too. The first member says what the archive is. What was not written by this program
is refused before anybody uses what was unpacked: links, names that are not expected, changed bytes, an archive that is
cut off or goes on, and more bytes than there may be.
"""

import hashlib
import io
import json
import math
import os
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from musicsim.library.disk.scratch import Scratch
from musicsim.storage import writing_to

_HASHES = "hashes.txt"
_MAX_ABOUT = 1 << 16
_CHUNK = 1 << 20
_MIN_FILE = 4096  # bytes that a file takes on a disk, however short it is
_MAX_NAME = 255  # bytes of the name of a file or folder on usual disks
_MAX_FEW = 10_000  # files of models and embeddings: some ten for each of hundreds of models

MALFORMED = (tarfile.TarError, ValueError, EOFError, KeyError, TypeError, RecursionError)
"""What reading an archive raises that was not written as it should be."""


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def new_archive(target: Path, mode: int) -> Iterator[tuple[Path, BinaryIO]]:
    """Give a folder to work in and a file to write; the file takes the place of `target` when the block ends well.

    Both lie beside `target`, where there has to be room anyway. `mode` are the permissions of the file.

    Raises StorageError as :func:`writing_to`.
    """
    working = target.absolute().parent / ".musicsim-backup"
    scratch = Scratch(working)
    try:
        with scratch.folder() as work, writing_to(target):
            written = work / "archive"
            written.touch(mode)
            with written.open("wb") as stream:
                yield work, stream
                stream.flush()
                os.fsync(stream.fileno())
            written.replace(target)
    finally:
        scratch.close()
        with suppress(OSError):  # another one may be at work there
            working.rmdir()


class HashedTar:
    """An archive that is being written."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._hashes: list[str] = []

    def add_file(self, name: str, path: Path, n_bytes: int | None = None) -> bool:
        """Add a file, or its first bytes; False where there is none, or not so many."""
        try:
            stream = path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return False
        with stream:
            there = stream.seek(0, io.SEEK_END)
            size = there if n_bytes is None else n_bytes
            stream.seek(0)
            if size > there:
                return False
            self._add(name, stream, size)
        return True

    def add_bytes(self, name: str, data: bytes) -> None:
        """Add a file of these bytes."""
        self._add(name, io.BytesIO(data), len(data))

    def finish(self) -> None:
        """Add the hashes."""
        self.add_bytes(_HASHES, "".join(self._hashes).encode())

    def _add(self, name: str, stream: BinaryIO, size: int) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(time.time()), 0o600
        read = _Hashed(stream)
        self._tar.addfile(member, read)  # type: ignore[arg-type]  # it reads, and no more
        self._tar.members.clear()  # type: ignore[attr-defined]  # or all are remembered
        self._hashes.append(f"{read.digest}  {name}\n")


class _Hashed:
    """A stream whose bytes are hashed as they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._hash = stream, hashlib.sha256()

    def read(self, n_bytes: int) -> bytes:
        block = self._stream.read(n_bytes)
        self._hash.update(block)
        return block

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


# --- reading --------------------------------------------------------------------------------------


class PlainMember(tarfile.TarInfo):
    """A member of an archive that holds plain files only; what else one is refused before any more of it is read.

    Longer names and further facts of members come as members of their own, which tarfile reads into memory whole.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """A member from its header; raises ValueError if it is no plain file."""
        member = super().frombuf(buf, encoding, errors)
        _check_plain(member)
        return member


def read_about(tar: tarfile.TarFile, name: str) -> dict[str, Any]:
    """What the first member, of this name, says of the archive; raises one of :data:`MALFORMED` if it is another."""
    return _about(_members(tar), tar, name)[0]


def _about(members: Iterator[tarfile.TarInfo], tar: tarfile.TarFile, name: str) -> tuple[dict[str, Any], str]:
    """What the first member says, and its line among the hashes."""
    first = next(members, None)
    if first is None or first.name != name or first.size > _MAX_ABOUT:
        raise ValueError("it does not begin as one")
    data = _read(tar, first)
    about = json.loads(data)
    if not isinstance(about, dict):
        raise ValueError("it does not say what it is")
    return about, f"{hashlib.sha256(data).hexdigest()}  {name}\n"


def max_members(n_bytes: int, least: int) -> int:
    """The most members that an archive of a length may have.

    The files of models are few. Songs can be millions, but each has a file of at least `least` bytes on average, as
    packed; an archive with more members than that was made to fill a disk with empty files.
    """
    return _MAX_FEW + n_bytes // least


def unpack(
    tar: tarfile.TarFile,
    target: Path,
    *,
    about: str,
    check_about: Callable[[dict[str, Any]], None],
    is_expected: Callable[[str], bool],
    tell: Callable[[str, int, int], None],
    max_bytes: float = math.inf,
    max_members: float = math.inf,
) -> tuple[set[str], dict[str, Any]]:
    """Write the members of an archive into an empty folder; return their names and the content of the first one.

    `about` is the name of the first member; `check_about` gets its content before anything else is read, and may raise.
    `is_expected` has to refuse names that lead out of the folder. Each member counts at least as a small file.

    Raises one of :data:`MALFORMED` if the archive was altered or cut off.
    """
    members = _members(tar)
    said, line = _about(members, tar, about)
    check_about(said)
    seen = hashlib.sha256(line.encode())
    found: set[str] = set()
    n_bytes_of_hashes, left = len(line), max_bytes
    for number, member in enumerate(members):
        left -= max(member.size, _MIN_FILE)
        if left < 0:
            raise ValueError(f"it unpacks to more than {max_bytes / 1e6:,.0f} MB")
        if member.name == _HASHES:
            if member.size != n_bytes_of_hashes:
                raise ValueError("something was added to it, or is missing")
            data = _read(tar, member)
            if hashlib.sha256(data).digest() != seen.digest():
                raise ValueError(_first_altered(data, target, found))
            if next(members, None) is not None:
                raise ValueError("something was added to it")
            return found, said
        if number >= max_members:
            raise ValueError(f"it has more than {max_members:,} parts")
        if any(len(os.fsencode(part)) > _MAX_NAME for part in member.name.split("/")):
            raise ValueError(f"{member.name[:80]!r} is longer than names may be, {_MAX_NAME} bytes")
        if not is_expected(member.name):
            raise ValueError(f"{member.name[:80]!r} is not what one holds")
        line = f"{_write(tar, member, target / member.name)}  {member.name}\n"
        n_bytes_of_hashes += len(line.encode())
        seen.update(line.encode())
        found.add(member.name)
        tell("unpacking", len(found), 0)
    raise ValueError("it is cut off")


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := tar.next()) is not None:
        _check_plain(member)
        yield member
        tar.members.clear()  # type: ignore[attr-defined]  # or all are remembered


def _check_plain(member: tarfile.TarInfo) -> None:
    if member.type != tarfile.REGTYPE or member.issparse() or member.size < 0:
        raise ValueError(f"{member.name[:80]!r} is no plain file")


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    data = stream.read() if stream else b""
    if len(data) < member.size:
        raise ValueError("it is cut off")
    return data


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
    """Write a member to a file that only its owner can read; its hash."""
    target.parent.mkdir(parents=True, exist_ok=True)
    stream = tar.extractfile(member)
    found, left = hashlib.sha256(), member.size
    with target.open("wb") as out:
        while stream and (block := stream.read(min(_CHUNK, left))):
            found.update(block)
            out.write(block)
            left -= len(block)
    if left:
        raise ValueError("it is cut off")
    return found.hexdigest()


def _first_altered(hashes: bytes, folder: Path, names: set[str]) -> str:
    for line in hashes.decode("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        if name in names:
            with (folder / name).open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    return f"{name} was altered"
    return "it was altered"
