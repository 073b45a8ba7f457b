"""Files as text that cannot harm: encodings, archives, and limits for lines, entries and what is unpacked.

Nothing is read whole: lines come one at a time, and of a JSON document one entry of its list.
"""

import codecs
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from musicsim.errors import LibraryError
from musicsim.library.disk.archives import in_short

ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
HEAD_LENGTH = 1 << 16  # characters that a format is recognised by
LONGEST = 1 << 20  # characters of a line or an entry: real ones have thousands
_CHUNK = 1 << 16
_MAX_UNPACKED = 8 << 30  # bytes of an archive: all that one person hears in a life is less
_MAX_MEMBERS = 10_000
_HIGHEST_RATIO = 250  # JSON of listens packs 10 to 40 times, a bomb a thousand
LIST_SUFFIXES = (".m3u", ".m3u8", ".pls", ".xspf", ".jspf")
READ_SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".db", *LIST_SUFFIXES)


@dataclass(frozen=True, slots=True)
class Source:
    """One file, or one member of an archive."""

    path: Path
    member: str | None  # its name in the archive
    size: int  # bytes, unpacked
    encoding: str | None  # as it was named; None: UTF-8, or what the byte order mark says
    # whether it was asked for by its name: what was found in a folder or an archive may be of another kind
    is_named: bool = True

    @property
    def ending(self) -> str:
        """What its name ends in, as .json."""
        return PurePosixPath(self.member or self.path.name).suffix.lower()

    @property
    def label(self) -> str:
        """What messages call it."""
        return str(self.path) if self.member is None else f"{self.path}: {self.member}"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Its bytes; whatever goes wrong with the file or archive is a LibraryError."""
        try:
            if self.member is None:
                with self.path.open("rb") as stream:
                    yield stream
            else:
                with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as stream:
                    yield stream
        except OSError as error:
            raise LibraryError(f"{self.label}: cannot be read ({error.strerror or error}).") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise LibraryError(f"{self.label}: the archive is damaged or locked ({in_short(error)}).") from error

    @contextmanager
    def text(self, errors: str = "strict") -> Iterator[tuple[io.TextIOWrapper, IO[bytes]]]:
        """Its text, and the bytes below it to ask how far reading has come; `errors` as of :func:`open`."""
        with self.open() as stream:
            buffered = io.BufferedReader(stream) if self.member is not None else stream  # type: ignore[type-var]
            start = buffered.peek(4)[:4]  # type: ignore[attr-defined]
            if self.encoding is not None:
                encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
            elif start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                encoding = "utf-16"
            else:
                encoding = "utf-8-sig"
            try:
                yield io.TextIOWrapper(buffered, encoding=encoding, errors=errors, newline=""), buffered
            except UnicodeError as error:  # utf-16 without a mark is one, too
                raise LibraryError(self.not_text(encoding)) from error

    def not_text(self, encoding: str = "utf-8-sig") -> str:
        """The words for bytes that are no text, with their line."""
        where = ""
        if encoding == "utf-8-sig":
            with self.open() as stream:
                for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), 1):
                    try:
                        line.decode()
                    except UnicodeDecodeError:
                        where = f"line {number} is "
                        break
        known = ", ".join(ENCODINGS)
        name = encoding.removesuffix("-sig").upper()
        return f"{self.label}: {where}not {name} text. Save it as UTF-8, or name its encoding ({known})."

    def head(self) -> str:
        """The text it begins with; bytes that are not UTF-8 stand in it as :func:`os.fsdecode` has them."""
        with self.text("surrogateescape") as (stream, _):
            return stream.read(HEAD_LENGTH)


def find_sources(paths: Sequence[Path], encoding: str | None) -> list[Source]:
    """Files, and those in folders and archives that may be read, in the order of their names in each.

    Of a folder, those below it count as well; hidden ones do not.

    Raises LibraryError if a file cannot be read, or an archive would unpack to more than it should.
    """
    if encoding is not None and encoding not in ENCODINGS:
        raise ValueError(f"encoding={encoding!r}: choose from {', '.join(ENCODINGS)}.")
    found: list[Source] = []
    for path in paths:
        try:
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                found += _files_in(path, encoding)
            elif not stat.S_ISREG(status.st_mode):  # a pipe would wait for a writer, a device never end
                raise LibraryError(f"{path}: is a device or a pipe. Name a file or a folder.")
            elif zipfile.is_zipfile(path):
                found += _members(path, encoding)
            else:
                found.append(Source(path, None, status.st_size, encoding))
        except zipfile.BadZipFile as error:
            raise LibraryError(f"{path}: the archive is damaged ({in_short(error)}). Download it again.") from error
        except OSError as error:
            raise LibraryError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return found


def _files_in(folder: Path, encoding: str | None) -> list[Source]:
    found = []
    for inside, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(inside, name)
            if path.suffix.lower() in READ_SUFFIXES and not name.startswith(".") and path.is_file():
                found.append(Source(path, None, path.stat().st_size, encoding, is_named=False))
        if len(found) > _MAX_MEMBERS:
            raise LibraryError(f"{folder}: holds more than {_MAX_MEMBERS} files to read. Name folders in it.")
    if not found:
        raise LibraryError(f"{folder}: the folder holds no {', '.join(READ_SUFFIXES)} file.")
    return found


def _members(path: Path, encoding: str | None) -> list[Source]:
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir()]
    texts = [m for m in members if m.filename.lower().endswith(READ_SUFFIXES)]
    if not texts:
        raise LibraryError(f"{path}: the archive holds no {', '.join(READ_SUFFIXES)} file.")
    for m in texts:
        if m.file_size > _CHUNK and m.file_size > _HIGHEST_RATIO * max(m.compress_size, 1):
            raise LibraryError(
                f"{path}: {m.filename} would unpack to {m.file_size >> 20} MB, {_HIGHEST_RATIO} times its size "
                f"or more, as no history does. If it is one, unpack it first."
            )
    if len(members) > _MAX_MEMBERS or sum(m.file_size for m in texts) > _MAX_UNPACKED:
        raise LibraryError(
            f"{path}: the archive holds {len(members)} files of {sum(m.file_size for m in texts) >> 20} MB; "
            f"at most {_MAX_MEMBERS} and {_MAX_UNPACKED >> 20} MB are unpacked. Unpack it, and import the files."
        )
    texts.sort(key=lambda m: m.filename)
    return [Source(path, m.filename, m.file_size, encoding, is_named=False) for m in texts]


class _Watched:
    """A text that is read with an eye on how far it has come."""

    def __init__(self, source: Source, stream: io.TextIOWrapper, below: IO[bytes], watch: Any) -> None:
        self.source, self.line = source, 0
        self._stream, self._below, self._watch = stream, below, watch

    def fault(self, reason: str) -> LibraryError:
        """An error that names the file and the line."""
        gap = "" if reason.startswith(":") else " "
        return LibraryError(f"{self.source.label}: line {max(self.line, 1)}{gap}{reason}")

    @property
    def place(self) -> str:
        """File and line, as reports name them."""
        return f"{self.source.member or self.source.path.name}, line {self.line}"

    def _told(self) -> None:
        if self._watch is not None:
            self._watch(self._below.tell())


class TextLines(_Watched):
    """Lines of a text, counted in `line`."""

    def __iter__(self) -> Iterator[str]:
        while text := self._stream.readline(LONGEST + 1):
            self.line += 1
            if len(text) > LONGEST:
                raise self.fault(f"is longer than {LONGEST} characters: this is no listening history.")
            if "\0" in text:
                raise self.fault("holds a NUL byte: the file is no text, or its encoding is another.")
            if self.line % 4096 == 0:
                self._told()
            yield text


class RawBytes(_Watched):
    """Bytes of a file in blocks, for a parser that knows encodings by itself and sets `line`."""

    def __iter__(self) -> Iterator[bytes]:
        while block := self._below.read(_CHUNK):
            self._told()
            yield block


class JsonStream(_Watched):
    """A JSON document that is read one entry of its list at a time.

    `title` is what it calls itself, as far as it was read: the first text under "title" or "name". Memory: the
    largest entry, at most a few MB (`longest` characters), whatever the document's size.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._buffer, self._at, self._is_all = "", 0, False
        self._has_list = False
        self._decoder = json.JSONDecoder()
        self.line = 1
        self.longest, self.title = LONGEST, ""

    def entries(self, *names: str) -> Iterator[Any]:
        """Entries of the document's list, or of the first list that stands under one of `names`.

        Other members of objects on the way are read past.
        """
        yield from self._inside(names)
        if not self._has_list:
            raise self.fault("is the last, and there was no list of records. Is this the file of the listens?")
        if self._peek():
            raise self.fault("goes on after the end of the document.")

    def _inside(self, names: Sequence[str], depth: int = 0) -> Iterator[Any]:
        if self._peek() == "[":
            yield from self._array()
        elif self._peek() == "{" and depth < 4:
            self._take("{")
            while self._peek() != "}":
                name = self._value()
                if not isinstance(name, str):
                    raise self.fault("is not JSON: the name of a member should be text.")
                self._take(":")
                if name in names:
                    yield from self._inside(names, depth + 1)
                else:
                    value = self._value()
                    if name in ("title", "name") and isinstance(value, str):
                        self.title = self.title or value
                if self._peek() != "}":
                    self._take(",")
            self._take("}")
        else:
            self._value()

    def _array(self) -> Iterator[Any]:
        self._take("[")
        self._has_list = True
        count = 0
        while self._peek() != "]":
            start, value = self.line, self._value()
            end, self.line = self.line, start  # of what is wrong with an entry, its beginning is reported
            yield value
            self.line = end
            if self._peek() != "]":
                self._take(",")
            count += 1
            if count % 1024 == 0:
                self._told()
        self._take("]")

    def _more(self) -> bool:
        text = "" if self._is_all else self._stream.read(max(_CHUNK, len(self._buffer) - self._at))
        self._is_all = not text
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        return bool(text)

    def _forward(self, end: int) -> None:
        self.line += self._buffer.count("\n", self._at, end)
        self._at = end

    def _peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            self._forward(_SPACE.match(self._buffer, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _take(self, sign: str) -> None:
        found = self._peek()
        if found != sign:
            reason = f"has {found!r} where {sign!r} should be" if found else "is the last: the file is cut off"
            raise self.fault(f"{reason}. Export it again.")
        self._at += 1

    def _value(self) -> Any:
        if not self._peek():
            raise self.fault("is the last: the file is cut off. Export it again.")
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                raise self.fault("is nested too deeply for a listening history.") from error
            except ValueError as error:  # json's own; and numbers of thousands of digits
                if len(self._buffer) - self._at > self.longest or not self._more():
                    position = getattr(error, "pos", self._at)
                    self._forward(min(position, len(self._buffer)))
                    reason = getattr(error, "msg", str(error))
                    raise self.fault(f"is not JSON ({reason}), or the file is cut off.") from error
                continue
            if end == len(self._buffer) and self._more():
                continue  # a number may go on
            self._forward(end)
            return value


_SPACE = re.compile(r"[ \t\r\n]*")
