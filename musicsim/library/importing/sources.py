"""Safe reading of text files and archives, piece by piece, with limits on lines, entries and unpacked sizes."""

import codecs
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from musicsim.errors import LibraryError
from musicsim.library.disk.archives import shorten_message
from musicsim.library.importing.records import Gatherer, Kind

ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
HEAD = 1 << 16  # number of characters that are read to recognize the format
LONGEST = 1 << 20  # maximum number of characters in a line or entry; real ones have thousands
_CHUNK = 1 << 16
_MAX_UNPACKED = 8 << 30  # maximum number of unpacked bytes per archive; a lifetime of listening takes less
_MAX_MEMBERS = 10_000
_HIGHEST_RATIO = 250  # maximum compression ratio: listens as JSON reach 10 to 40, and a zip bomb reaches 1,000
LIST_SUFFIXES = (".m3u", ".m3u8", ".pls", ".xspf", ".jspf")
READ_SUFFIXES = (".json", ".jsonl", ".csv", ".tsv", ".txt", ".db", *LIST_SUFFIXES)
_SPACE = re.compile(r"[ \t\r\n]*")
_CUT_OFF = "is incomplete: the file is cut off. Export it again."


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    member: str | None  # name of the file in its archive; None outside archives
    size: int  # bytes, unpacked
    encoding: str | None  # None: UTF-8, or the encoding of the byte order mark
    is_named: bool = True  # True if the user named this file; other files in folders and archives may have any format

    @property
    def ending(self) -> str:
        """Extension of the file name, such as .json."""
        return PurePosixPath(self.member or self.path.name).suffix.lower()

    @property
    def label(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}: {self.member}"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Open for reading bytes; every problem with the file or archive becomes a LibraryError."""
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
            raise LibraryError(f"{self.label}: the archive is damaged or locked ({shorten_message(error)}).") from error

    @contextmanager
    def text(self, errors: str = "strict") -> Iterator[tuple[io.TextIOWrapper, IO[bytes]]]:
        """Open for reading text; also yield the underlying bytes, whose position shows the progress."""
        with self.open() as stream:
            buffered = io.BufferedReader(stream) if self.member is not None else stream  # type: ignore[type-var]
            start = buffered.peek(4)[:4]  # type: ignore[attr-defined]
            is_utf16 = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            encoding = self.encoding or ("utf-16" if is_utf16 else "utf-8")
            encoding = "utf-8-sig" if encoding == "utf-8" else encoding
            try:
                yield io.TextIOWrapper(buffered, encoding=encoding, errors=errors, newline=""), buffered
            except UnicodeError as error:  # UTF-16 without a byte order mark raises this base class
                raise LibraryError(self.not_text(encoding)) from error

    def not_text(self, encoding: str = "utf-8-sig") -> str:
        """Return the error message for bytes that are not text, with their line."""
        place = ""
        if encoding == "utf-8-sig":
            with self.open() as stream:
                for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), 1):
                    try:
                        line.decode()
                    except UnicodeDecodeError:
                        place = f"line {number} is "
                        break
        name = encoding.removesuffix("-sig").upper()
        return f"{self.label}: {place}not {name} text. Save it as UTF-8, or give its encoding ({', '.join(ENCODINGS)})."

    def head(self) -> str:
        """Return the beginning of the text, with non-UTF-8 bytes as surrogates like :func:`os.fsdecode`."""
        with self.text("surrogateescape") as (stream, _):
            return stream.read(HEAD)


def find_sources(paths: Sequence[Path], encoding: str | None) -> list[Source]:
    """Return the given files, and the readable files in folders (except hidden files) and archives, sorted by name."""
    if encoding is not None and encoding not in ENCODINGS:
        raise ValueError(f"encoding={encoding!r}: choose from {', '.join(ENCODINGS)}.")
    sources: list[Source] = []
    for path in paths:
        try:
            status = path.stat()
            if stat.S_ISDIR(status.st_mode):
                sources += _files_in(path, encoding)
            elif not stat.S_ISREG(status.st_mode):  # a pipe would wait for a writer, and a device may never end
                raise LibraryError(f"{path}: is a device or a pipe. Give a file or a folder.")
            elif zipfile.is_zipfile(path):
                sources += _members(path, encoding)
            else:
                sources.append(Source(path, None, status.st_size, encoding))
        except zipfile.BadZipFile as error:
            raise LibraryError(
                f"{path}: the archive is damaged ({shorten_message(error)}). Download it again."
            ) from error
        except OSError as error:
            raise LibraryError(f"{path}: cannot be read ({error.strerror or error}).") from error
    return sources


def _files_in(folder: Path, encoding: str | None) -> list[Source]:
    sources = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix.lower() in READ_SUFFIXES and not name.startswith(".") and path.is_file():
                sources.append(Source(path, None, path.stat().st_size, encoding, is_named=False))
        if len(sources) > _MAX_MEMBERS:
            raise LibraryError(
                f"{folder}: contains more than {_MAX_MEMBERS} files to read. Give its subfolders instead."
            )
    if not sources:
        raise LibraryError(f"{folder}: the folder does not contain a {', '.join(READ_SUFFIXES)} file.")
    return sources


def _members(path: Path, encoding: str | None) -> list[Source]:
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir()]
    texts = [m for m in members if m.filename.lower().endswith(READ_SUFFIXES)]
    if not texts:
        raise LibraryError(f"{path}: the archive does not contain a {', '.join(READ_SUFFIXES)} file.")
    for m in texts:
        if m.file_size > _CHUNK and m.file_size > _HIGHEST_RATIO * max(m.compress_size, 1):
            size = f"{m.file_size >> 20} MB, at least {_HIGHEST_RATIO} times its size"
            raise LibraryError(f"{path}: {m.filename} would unpack to {size}. If it is a history, unpack it first.")
    if len(members) > _MAX_MEMBERS or sum(m.file_size for m in texts) > _MAX_UNPACKED:
        limit = f"more than {_MAX_MEMBERS} files or {_MAX_UNPACKED >> 20} MB"
        raise LibraryError(f"{path}: the archive contains {limit}. Unpack it, and import the files.")
    texts.sort(key=lambda m: m.filename)
    return [Source(path, m.filename, m.file_size, encoding, is_named=False) for m in texts]


class _Watched:
    def __init__(self, source: Source, stream: io.TextIOWrapper, raw: IO[bytes], watch: Any) -> None:
        self.source, self.line = source, 0
        self._stream, self._raw, self._watch = stream, raw, watch

    def fault(self, reason: str) -> LibraryError:
        gap = "" if reason.startswith(":") else " "
        return LibraryError(f"{self.source.label}: line {max(self.line, 1)}{gap}{reason}")

    @property
    def place(self) -> str:
        return f"{self.source.member or self.source.path.name}, line {self.line}"

    def _report(self) -> None:
        if self._watch is not None:
            self._watch(self._raw.tell())


class TextLines(_Watched):
    """Lines of a text; `line` is the number of the current line."""

    def __iter__(self) -> Iterator[str]:
        while text := self._stream.readline(LONGEST + 1):
            self.line += 1
            if len(text) > LONGEST:
                raise self.fault(f"is longer than {LONGEST} characters: this is not a listening history.")
            if "\0" in text:
                raise self.fault("contains a NUL byte: the file is not text, or has another encoding.")
            if self.line % 4096 == 0:
                self._report()
            yield text


class RawBytes(_Watched):
    """Bytes of a file in blocks, for a parser that handles encodings itself and sets `line`."""

    def __iter__(self) -> Iterator[bytes]:
        while block := self._raw.read(_CHUNK):
            self._report()
            yield block


class JsonStream(_Watched):
    """A JSON document, read one entry of its list at a time; an entry can have up to `longest` characters.

    `title` is the first string read so far under "title" or "name".
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._buffer, self._at, self._is_all = "", 0, False
        self._has_list = False
        self._decoder = json.JSONDecoder()
        self.line = 1
        self.longest, self.title = LONGEST, ""

    def entries(self, *names: str) -> Iterator[Any]:
        """Yield the entries of the document's list, or of the lists under one of `names`; skip everything else."""
        yield from self._inside(names)
        if not self._has_list:
            raise self.fault("is the end of the file, but no list of records was found. Is this the right file?")
        if self._peek():
            raise self.fault("has extra data after the end of the document.")

    def _inside(self, names: Sequence[str], depth: int = 0) -> Iterator[Any]:
        if self._peek() == "[":
            yield from self._array()
        elif self._peek() == "{" and depth < 4:
            self._take("{")
            while self._peek() != "}":
                name = self._value()
                if not isinstance(name, str):
                    raise self.fault("is not JSON: the name of a member must be a string.")
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
            end, self.line = self.line, start  # errors report the line where the entry begins
            yield value
            self.line = end
            if self._peek() != "]":
                self._take(",")
            count += 1
            if count % 1024 == 0:
                self._report()
        self._take("]")

    def _read_more(self) -> bool:
        text = "" if self._is_all else self._stream.read(max(_CHUNK, len(self._buffer) - self._at))
        self._is_all = not text
        self._buffer, self._at = self._buffer[self._at :] + text, 0
        return bool(text)

    def _move_to(self, end: int) -> None:
        self.line += self._buffer.count("\n", self._at, end)
        self._at = end

    def _peek(self) -> str:
        """Return the next character that is not a space; "" at the end."""
        while True:
            self._move_to(_SPACE.match(self._buffer, self._at).end())  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._read_more():
                return ""

    def _take(self, expected: str) -> None:
        character = self._peek()
        if not character:
            raise self.fault(_CUT_OFF)
        if character != expected:
            raise self.fault(f"has {character!r} instead of {expected!r}. Export it again.")
        self._at += 1

    def _value(self) -> Any:
        if not self._peek():
            raise self.fault(_CUT_OFF)
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except RecursionError as error:
                raise self.fault("is nested too deeply for a listening history.") from error
            except ValueError as error:  # from json, or from a number with thousands of digits
                if len(self._buffer) - self._at > self.longest or not self._read_more():
                    self._move_to(min(getattr(error, "pos", self._at), len(self._buffer)))
                    reason = getattr(error, "msg", str(error))
                    raise self.fault(f"is not JSON ({reason}), or the file is cut off.") from error
                continue
            if end == len(self._buffer) and self._read_more():
                continue  # the number may continue in the next block
            self._move_to(end)
            return value


@dataclass(frozen=True, slots=True)
class ImportFormat:
    label: str  # name shown to people
    kind: Kind
    read: Callable[[Any, Gatherer], None]  # called with an instance of `source`
    source: type[TextLines | JsonStream | RawBytes] = TextLines
    is_lenient: bool = False  # accepts paths that are not UTF-8
    signs: tuple[str, ...] = ()  # strings that all occur at the start of such files, but not of other files
