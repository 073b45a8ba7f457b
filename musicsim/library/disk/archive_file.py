"""Archives: tar files, packed by Zstandard, whose last member has the hashes of all others.

The first member says what an archive is. ``sha256sum --check hashes.txt`` reads the last one, too. An archive may come
from anybody, so it is checked before anybody uses what was unpacked. Links, unexpected names, changed bytes, an archive
that is cut off or goes on, and more parts or bytes than an honest one has are refused.
"""

import hashlib
import io
import json
import os
import re
import tarfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import zstandard

from musicsim import LIBRARY_FILE, __version__
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library.disk.archives import DAMAGED, in_short
from musicsim.library.disk.scratch import Scratch
from musicsim.progress import Progress
from musicsim.storage import writing_to

_FORMAT = 1
_HASHES = "hashes.txt"
_MAX_ABOUT = 1 << 16
_CHUNK = 1 << 20
_LEVEL, _THREADS = 3, -1  # as many threads as there are cores
_MAX_WINDOW = 1 << 27  # bytes of memory for unpacking
_MIN_FILE = 4096  # bytes that a file takes on a disk, however short it is
_MAX_NAME = 100  # bytes of a name in a plain header
_LATEST_S = 2.5e11  # in the year 9892
# songs and vectors pack to a half or a third, a bomb to a thousandth
_MAX_RATIO, _MAX_SMALL = 40, 256 << 20
# files of models are few; a second of sound takes more than a kilobyte, and an excerpt more than four
_MAX_FEW, _LEAST_FILE = 10_000, 1024
_MALFORMED = (tarfile.TarError, zstandard.ZstdError, KeyError, TypeError, RecursionError, *DAMAGED)


@contextmanager
def folder_next_to(target: Path) -> Iterator[Path]:
    """Give a temporary folder on the disk of a file, which needs the room anyway."""
    working = target.absolute().parent / ".musicsim-backup"
    scratch = Scratch(working)
    try:
        with scratch.folder() as folder:
            yield folder
    finally:
        scratch.close()
        with suppress(OSError):  # another process may work there
            working.rmdir()


@dataclass(frozen=True, slots=True)
class ArchiveKind:
    """A kind of archive."""

    title: str  # its name in messages
    about: str  # name of the first member
    names: re.Pattern[str]  # names of members; none leads out of a folder
    advice: str  # end of the sentence on a damaged one
    mode: int = 0o600  # permissions of the file

    @contextmanager
    def write(self, target: Path, work: Path) -> Iterator["ArchiveWriter"]:
        """Write an archive in a folder on the same disk; it replaces `target` if the block ends well.

        Raises LibraryError if `target` is something else; StorageError as :func:`writing_to`.
        """
        if target.exists() and not self._is_one(target):
            raise LibraryError(f"{target}: this is there already, and no {self.title}. Name another file.")
        packer = zstandard.ZstdCompressor(level=_LEVEL, threads=_THREADS, write_checksum=True)
        written = work / "archive"
        with writing_to(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            written.touch(self.mode)
            with written.open("wb") as stream:
                with (
                    packer.stream_writer(stream, closefd=False) as packed,
                    tarfile.open(fileobj=packed, mode="w|", bufsize=_CHUNK, format=tarfile.GNU_FORMAT) as tar,
                ):
                    archive = ArchiveWriter(tar)
                    about = {"format": _FORMAT, "musicsim": __version__, "created_at": time.time()}
                    archive.add_bytes(self.about, json.dumps(about).encode())
                    yield archive
                    archive.finish()
                stream.flush()
                os.fsync(stream.fileno())
            written.replace(target)

    @contextmanager
    def refusing(self, name: str) -> Iterator[None]:
        """Raise LibraryError for errors that show a damaged or altered archive; `name` is that of its file."""
        try:
            yield
        except _MALFORMED as error:
            why = in_short(error)
            raise LibraryError(f"{name}: this is no whole {self.title} of musicsim ({why}){self.advice}") from error

    @contextmanager
    def open(self, path: Path) -> Iterator[BinaryIO]:
        """Open an archive. Raises NotFoundError if it is missing."""
        if not path.is_file():
            raise NotFoundError(f"{path}: there is no such file.")
        with path.open("rb") as stream:
            yield stream

    def unpack(
        self, stream: BinaryIO, name: str, folder: Path, progress: Progress, also: Collection[str] = ()
    ) -> tuple[set[str], float]:
        """Unpack an archive with the database of a library into an empty folder.

        Parameters
        ----------
        name : str
            Name of its file for messages.
        also : collection of str
            Further names that members may have.

        Returns
        -------
        The names of all that was written, and when the archive was made, seconds since 1970.

        Raises
        ------
        LibraryError
            If it is of a newer version. Call it within :meth:`refusing`, which handles all other errors.
        """
        n_bytes = os.fstat(stream.fileno()).st_size
        left, max_members = _MAX_SMALL + _MAX_RATIO * n_bytes, _MAX_FEW + n_bytes // _LEAST_FILE
        with _opened(stream) as (tar, members):
            about, line = self._read_about(members, tar)
            if about["format"] != _FORMAT:
                raise LibraryError(
                    f"{name}: this {self.title} was made by a newer musicsim. Update musicsim, and try again."
                )
            made = about["created_at"]
            if isinstance(made, bool) or not isinstance(made, int | float) or not 0 <= made < _LATEST_S:
                raise ValueError("it does not say when it was made")
            hashes, n_bytes_of_hashes = hashlib.sha256(line.encode()), len(line)
            written: set[str] = set()
            for number, member in enumerate(members):
                left -= max(member.size, _MIN_FILE)
                if left < 0:
                    raise ValueError(f"it unpacks to more than {(_MAX_SMALL + _MAX_RATIO * n_bytes) / 1e6:,.0f} MB")
                if member.name == _HASHES:
                    break
                if number >= max_members:
                    raise ValueError(f"it has more than {max_members:,} parts")
                if not self.names.fullmatch(member.name) and member.name not in also:
                    raise ValueError(f"{member.name[:80]!r} is not what one holds")
                line = f"{_write(tar, member, folder / member.name)}  {member.name}\n"
                n_bytes_of_hashes += len(line.encode())
                hashes.update(line.encode())
                written.add(member.name)
                progress("unpacking", len(written), 0)
            else:
                raise ValueError("it is cut off")
            if member.size != n_bytes_of_hashes:
                raise ValueError("something was added to it, or is missing")
            if hashlib.sha256(_read(tar, member)).digest() != hashes.digest():
                raise ValueError("it was altered")
            if next(members, None) is not None:
                raise ValueError("something was added to it")
        if LIBRARY_FILE not in written:
            raise ValueError("it has no database")
        return written, float(made)

    def _is_one(self, path: Path) -> bool:
        try:
            with path.open("rb") as stream, _opened(stream) as (tar, members):
                self._read_about(members, tar)
        except (*_MALFORMED, OSError):
            return False
        return True

    def _read_about(self, members: Iterator[tarfile.TarInfo], tar: tarfile.TarFile) -> tuple[dict[str, Any], str]:
        """Read the first member; returns what it says, and its line among the hashes."""
        first = next(members, None)
        if first is None or first.name != self.about or first.size > _MAX_ABOUT:
            raise ValueError("it does not begin as one")
        data = _read(tar, first)
        about = json.loads(data)
        if not isinstance(about, dict):
            raise ValueError("it does not say what it is")
        return about, f"{hashlib.sha256(data).hexdigest()}  {self.about}\n"


class ArchiveWriter:
    """An archive that is being written."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._hashes: list[str] = []

    def add_file(self, name: str, path: Path, n_bytes: int | None = None) -> bool:
        """Add a file, or its first bytes; False if it does not exist, or is shorter."""
        try:
            stream = path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return False
        with stream:
            length = stream.seek(0, io.SEEK_END)
            size = length if n_bytes is None else n_bytes
            stream.seek(0)
            if size > length:
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
        if len(os.fsencode(name)) > _MAX_NAME:
            raise LibraryError(f"{name}: this name is too long for an archive.")
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(time.time()), 0o600
        hashed = _HashedStream(stream)
        self._tar.addfile(member, hashed)  # type: ignore[arg-type]  # it reads, and no more
        self._tar.members.clear()  # type: ignore[attr-defined]  # or all are remembered
        self._hashes.append(f"{hashed.hash.hexdigest()}  {name}\n")


class _HashedStream:
    """A stream that hashes the bytes that it reads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.hash = stream, hashlib.sha256()

    def read(self, n_bytes: int) -> bytes:
        block = self._stream.read(n_bytes)
        self.hash.update(block)
        return block


class _PlainMember(tarfile.TarInfo):
    """A member that is a plain file.

    tarfile reads members with longer names and further facts of others into memory whole.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header; raises ValueError for anything else than a plain file."""
        member = super().frombuf(buf, encoding, errors)
        if member.type != tarfile.REGTYPE or member.issparse() or member.size < 0:
            raise ValueError(f"{member.name[:80]!r} is no plain file")
        return member


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[tuple[tarfile.TarFile, Iterator[tarfile.TarInfo]]]:
    _check_end(stream)
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    with unpacker.stream_reader(stream, read_size=_CHUNK, closefd=False) as packed:
        with tarfile.open(fileobj=packed, mode="r|", bufsize=_CHUNK, tarinfo=_PlainMember) as tar:
            yield tar, _members(tar)
        while packed.read(_CHUNK):  # up to the checksum, which covers the padding, too
            pass


def _check_end(stream: BinaryIO) -> None:
    """Raise ValueError unless the file is one whole frame of Zstandard; the decompressor accepts a cut checksum."""
    start = stream.tell()
    header = stream.read(18)
    parameters = zstandard.get_frame_parameters(header)
    stream.seek(start + zstandard.frame_header_size(header))
    is_last = False
    while not is_last:
        block = int.from_bytes(stream.read(3).ljust(3, b"\1"), "little")
        is_last = bool(block & 1)
        stream.seek(1 if block >> 1 & 3 == 1 else block >> 3, os.SEEK_CUR)  # a block of one repeated byte has one byte
    end = stream.tell() + 4 * parameters.has_checksum
    if end != stream.seek(0, os.SEEK_END):
        raise ValueError("it is cut off, or goes on after its end")
    stream.seek(start)


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := tar.next()) is not None:
        yield member
        tar.members.clear()  # type: ignore[attr-defined]  # or all are remembered


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    data = stream.read() if stream else b""
    if len(data) < member.size:
        raise ValueError("it is cut off")
    return data


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
    """Write a member to a file; returns its hash."""
    target.parent.mkdir(parents=True, exist_ok=True)
    stream = tar.extractfile(member)
    digest, left = hashlib.sha256(), member.size
    with target.open("wb") as out:
        while stream and (block := stream.read(min(_CHUNK, left))):
            digest.update(block)
            out.write(block)
            left -= len(block)
    if left:
        raise ValueError("it is cut off")
    return digest.hexdigest()
