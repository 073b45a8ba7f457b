"""Archives: Zstandard-compressed tar files whose last member contains the hashes of all other members.

``sha256sum --check hashes.txt`` can read the last member. An archive may be hostile, so it is checked before use.
The check refuses links, unexpected names, changed or missing bytes, and too many parts or bytes.
"""

import hashlib
import io
import json
import os
import re
import tarfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import zstandard

from musicsim import LIBRARY_FILE, __version__
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library.disk.archives import DAMAGED, shorten_message
from musicsim.progress import Progress
from musicsim.storage import writing_to

_FORMAT = 1
_HASHES = "hashes.txt"
_MAX_ABOUT = 1 << 16
_CHUNK = 1 << 20
_LEVEL, _THREADS = 3, -1  # compression level and number of threads; -1: one per core
_MAX_WINDOW = 1 << 27  # maximum memory for decompression, in bytes
_MIN_FILE = 4096  # number of bytes that an empty file uses on disk
_MAX_NAME = 100  # maximum length of a name in a tar header, in bytes
_LATEST_S = 2.5e11  # latest valid time, in the year 9892
# songs and vectors are compressed to a third or half of their size, a zip bomb to a thousandth
_MAX_RATIO, _MAX_EXTRA = 40, 256 << 20
# An archive can have 10,000 parts, plus one per kB: models have few files, and an excerpt takes more than 4 kB.
_MIN_MEMBERS, _MEMBER_SIZE = 10_000, 1024
_MALFORMED: tuple[type[Exception], ...] = (
    tarfile.TarError,
    zstandard.ZstdError,
    KeyError,
    TypeError,
    RecursionError,
    *DAMAGED,
)
_UNREADABLE: tuple[type[Exception], ...] = (*_MALFORMED, OSError)


@dataclass(frozen=True, slots=True)
class ArchiveKind:
    title: str  # name of this kind in messages
    about: str  # name of the first member
    names: re.Pattern[str]  # allowed names of members, which must not point outside a folder
    advice: str  # end of the error message for a damaged archive
    mode: int = 0o600  # permissions of the file

    @contextmanager
    def write(self, target: Path, work: Path) -> Iterator["ArchiveWriter"]:
        """Write an archive in `work` and move it to `target`. Raises LibraryError for a `target` of another kind."""
        if target.exists() and not self._has_kind(target):
            raise LibraryError(f"{target}: this file exists and is not a {self.title}. Choose another name.")
        compressor = zstandard.ZstdCompressor(level=_LEVEL, threads=_THREADS, write_checksum=True)
        temporary = work / "archive"
        with writing_to(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch(self.mode)
            with temporary.open("wb") as stream:
                with (
                    compressor.stream_writer(stream, closefd=False) as compressed,
                    tarfile.open(fileobj=compressed, mode="w|", bufsize=_CHUNK, format=tarfile.GNU_FORMAT) as tar,
                ):
                    archive = ArchiveWriter(tar)
                    about = {"format": _FORMAT, "musicsim": __version__, "created_at": time.time()}
                    archive.add_bytes(self.about, json.dumps(about).encode())
                    yield archive
                    archive.finish()
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)

    @contextmanager
    def refusing(self, name: str) -> Iterator[None]:
        """Convert errors caused by a damaged or altered archive to LibraryError; `name` is the file name."""
        try:
            yield
        except _MALFORMED as error:
            raise LibraryError(
                f"{name}: this is not a complete {self.title} made by musicsim ({shorten_message(error)}){self.advice}"
            ) from error

    def open(self, path: Path) -> BinaryIO:
        """Open an archive. Raises NotFoundError if it is missing."""
        if not path.is_file():
            raise NotFoundError(f"{path}: no such file.")
        return path.open("rb")

    @contextmanager
    def unpacked(
        self, stream: BinaryIO, name: str, folder: Path, progress: Progress, also: Collection[str] = ()
    ) -> Iterator[tuple[set[str], float]]:
        """Unpack an archive with a library's database into an empty folder, and yield its files and creation time.

        `also` lists additional allowed member names. Within the block, errors are converted as in :meth:`refusing`.
        """
        with self.refusing(name):
            yield self._unpack(stream, name, folder, progress, also)

    def _unpack(
        self, stream: BinaryIO, name: str, folder: Path, progress: Progress, also: Collection[str]
    ) -> tuple[set[str], float]:
        n_bytes = os.fstat(stream.fileno()).st_size
        max_bytes, max_members = _MAX_EXTRA + _MAX_RATIO * n_bytes, _MIN_MEMBERS + n_bytes // _MEMBER_SIZE
        left = max_bytes
        with _open_tar(stream) as (tar, members):
            about, line = self._read_about(members, tar)
            if about["format"] != _FORMAT:
                raise LibraryError(
                    f"{name}: this {self.title} was made by a newer version of musicsim. Update musicsim and try again."
                )
            created_at = about["created_at"]
            if type(created_at) not in (int, float) or not 0 <= created_at < _LATEST_S:
                raise ValueError("its creation time is missing or invalid")
            hashes, n_bytes_of_hashes = hashlib.sha256(line.encode()), len(line)
            written: set[str] = set()
            for number, member in enumerate(members):
                left -= max(member.size, _MIN_FILE)
                if left < 0:
                    raise ValueError(f"it unpacks to more than {max_bytes / 1e6:,.0f} MB")
                if member.name == _HASHES:
                    break
                if number >= max_members:
                    raise ValueError(f"it has more than {max_members:,} parts")
                is_known = self.names.fullmatch(member.name) or member.name in also
                if not is_known or len(os.fsencode(member.name)) > _MAX_NAME:
                    raise ValueError(f"{member.name[:80]!r} is not an expected part")
                line = f"{_write(tar, member, folder / member.name)}  {member.name}\n"
                n_bytes_of_hashes += len(line.encode())
                hashes.update(line.encode())
                written.add(member.name)
                progress("unpacking", len(written), 0)
            else:
                raise ValueError("it is truncated")
            if member.size != n_bytes_of_hashes:
                raise ValueError("data was added to it or is missing from it")
            if hashlib.sha256(_read(tar, member)).digest() != hashes.digest():
                raise ValueError("it was altered")
            if next(members, None) is not None:
                raise ValueError("data was added to it")
        if LIBRARY_FILE not in written:
            raise ValueError("its database is missing")
        return written, float(created_at)

    def _has_kind(self, path: Path) -> bool:
        try:
            with path.open("rb") as stream, _open_tar(stream) as (tar, members):
                self._read_about(members, tar)
        except _UNREADABLE:
            return False
        return True

    def _read_about(self, members: Iterator[tarfile.TarInfo], tar: tarfile.TarFile) -> tuple[dict[str, Any], str]:
        """Return the content of the first member, and its line in the list of hashes."""
        first = next(members, None)
        if first is None or first.name != self.about or first.size > _MAX_ABOUT:
            raise ValueError("its first part is missing")
        data = _read(tar, first)
        about = json.loads(data)
        if not isinstance(about, dict):
            raise ValueError("its first part is damaged")
        return about, f"{hashlib.sha256(data).hexdigest()}  {self.about}\n"


class ArchiveWriter:
    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._hashes: list[str] = []

    def add_file(self, name: str, path: Path, n_bytes: int | None = None) -> bool:
        """Add a file, or its first `n_bytes`; return False if it does not exist or is shorter."""
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
        self._add(name, io.BytesIO(data), len(data))

    def finish(self) -> None:
        self.add_bytes(_HASHES, "".join(self._hashes).encode())

    def _add(self, name: str, stream: BinaryIO, size: int) -> None:
        if len(os.fsencode(name)) > _MAX_NAME:
            raise LibraryError(f"{name}: this name is too long for an archive.")
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, int(time.time()), 0o600
        hashed = _HashedStream(stream)
        self._tar.addfile(member, hashed)  # type: ignore[arg-type]  # addfile only calls read()
        self._tar.members.clear()  # type: ignore[attr-defined]  # otherwise it grows with every member
        self._hashes.append(f"{hashed.hash.hexdigest()}  {name}\n")


class _HashedStream:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.hash = stream, hashlib.sha256()

    def read(self, n_bytes: int) -> bytes:
        block = self._stream.read(n_bytes)
        self.hash.update(block)
        return block


class _PlainMember(tarfile.TarInfo):
    """A member that must be a plain file, because tarfile would read entire long names and headers into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type != tarfile.REGTYPE or member.issparse() or member.size < 0:
            raise ValueError(f"{member.name[:80]!r} is not a plain file")
        return member


@contextmanager
def _open_tar(stream: BinaryIO) -> Iterator[tuple[tarfile.TarFile, Iterator[tarfile.TarInfo]]]:
    _check_end(stream)
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    with decompressor.stream_reader(stream, read_size=_CHUNK, closefd=False) as tar_stream:
        with tarfile.open(fileobj=tar_stream, mode="r|", bufsize=_CHUNK, tarinfo=_PlainMember) as tar:
            yield tar, _members(tar)
        while tar_stream.read(_CHUNK):  # verify the checksum, which also covers the padding
            pass


def _check_end(stream: BinaryIO) -> None:
    """Raise ValueError unless the file is one Zstandard frame. The decompressor does not notice a cut-off checksum."""
    start = stream.tell()
    header = stream.read(18)
    parameters = zstandard.get_frame_parameters(header)
    stream.seek(start + zstandard.frame_header_size(header))
    is_last = False
    while not is_last:
        block = int.from_bytes(stream.read(3).ljust(3, b"\1"), "little")
        is_last = bool(block & 1)
        stream.seek(1 if block >> 1 & 3 == 1 else block >> 3, os.SEEK_CUR)  # a run-length block stores one byte
    end = stream.tell() + 4 * parameters.has_checksum
    if end != stream.seek(0, os.SEEK_END):
        raise ValueError("it is truncated, or has extra bytes at its end")
    stream.seek(start)


def _members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    while (member := tar.next()) is not None:
        yield member
        tar.members.clear()  # type: ignore[attr-defined]  # otherwise it grows with every member


def _read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    data = stream.read() if stream else b""
    if len(data) < member.size:
        raise ValueError("it is truncated")
    return data


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    stream = tar.extractfile(member)
    digest, left = hashlib.sha256(), member.size
    with target.open("wb") as out:
        while stream and (block := stream.read(min(_CHUNK, left))):
            digest.update(block)
            out.write(block)
            left -= len(block)
    if left:
        raise ValueError("it is truncated")
    return digest.hexdigest()
