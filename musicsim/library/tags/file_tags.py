"""Tags of audio files, read with mutagen. Errors never make a song unplayable; at worst, its title is the file name.

The bytes determine the format, not the file extension. Each field gets its first valid value, in this order: tags of
the container (FLAC, Ogg, MP4, ASF), ID3v2, RIFF INFO, APEv2, ID3v1. FFmpeg is tried if none of these has a value.
Tracker modules and MIDI files have none of these, but a title.
"""

import io
import logging
import re
import struct
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from musicsim import audio

MBID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""A pattern for MusicBrainz ids, in lower case."""

_log = logging.getLogger(__name__)
_LONGEST = 300  # maximum number of characters in a name; longer names are mistakes
_MAX_BYTES = 64 << 20  # maximum number of bytes to read per kind of tags, including pictures in Ogg and MP4
_CALL_BYTES = 256  # added to the count for each read, so that millions of tiny items also reach the limit
_MAX_FRAME = 1 << 16
_MAX_FRAMES = 1000  # maximum number of text frames per ID3 tag
_MAX_ITEMS = 50_000  # maximum number of items per APEv2 tag

# Lower-case names of the fields in all formats, preferred names first: ID3v2 frames, Vorbis and APEv2 keys, MP4 atoms,
# ASF attributes, RIFF INFO and AIFF chunks, and FFmpeg's names.
_NAMES = {
    "title": ("tit2", "title", "\xa9nam", "inam", "name"),
    "artist": ("tpe1", "artist", "\xa9art", "author", "iart", "auth"),
    "album_artist": ("tpe2", "albumartist", "album artist", "album_artist", "aart", "wm/albumartist"),
    "album": ("talb", "album", "\xa9alb", "wm/albumtitle", "iprd"),
    "track": ("trck", "tracknumber", "track", "trkn", "wm/tracknumber", "itrk", "iprt"),
    "year": (
        *("tdrc", "tyer", "date", "\xa9day", "year", "wm/year", "icrd", "date_released", "date_recorded"),
        *("tdor", "tory", "originaldate", "originalyear", "wm/originalreleaseyear"),
    ),
    "genre": ("tcon", "genre", "\xa9gen", "wm/genre", "ignr"),
    # MusicBrainz calls the recording id "track id" in every format except ID3
    "mb_recording_id": (
        *("ufid:http://musicbrainz.org", "musicbrainz_trackid"),
        *("musicbrainz track id", "musicbrainz/track id"),
    ),
    "mb_artist_id": ("musicbrainz_artistid", "musicbrainz artist id", "musicbrainz/artist id"),
    "mb_album_id": ("musicbrainz_albumid", "musicbrainz album id", "musicbrainz/album id"),
}
_FRAMES = frozenset(  # ID3v2.3 and 2.4, then the same for 2.2
    b"TIT2 TPE1 TPE2 TALB TRCK TDRC TYER TDOR TORY TCON TXXX UFID TT2 TP1 TP2 TAL TRK TYE TOR TCO TXX UFI".split()
)
# The same for lyrics, which scans do not read: they are larger than everything else.
_LYRIC_NAMES = {
    "lyrics": (
        *("uslt", "unsyncedlyrics", "unsynced lyrics", "lyrics", "\xa9lyr", "wm/lyrics"),
        *("sylt", "syncedlyrics"),
    )
}
_LYRIC_FRAMES = frozenset(b"USLT SYLT TXXX ULT SLT TXX".split())
_SUNG = (0, 1, 2)  # content types of SYLT: other, lyrics, transcription; not chords, events, trivia
_FRAME_NAME = re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]?")
_WHOLE_MBID = re.compile(f"(?<![0-9a-f]){MBID}(?![0-9a-f])")
# "2003", "2003-05-01", "01/05/2003", "200305", "20030501", but not part of another number
_YEAR = re.compile(r"(?<!\d)\d{4}(?=(?:\d\d){0,2}(?!\d))")
# Containers that mutagen does not know or may refuse. WAV, AIFF and bare streams such as MP3 are left out: all kinds of
# tags in them have been tried, and FFmpeg can spend seconds on a damaged WAV.
_FFMPEG_FORMATS = "matroska,webm,caf,w64,ogg,flac,asf,mov,mp4,m4a,3gp,mpc8,avi,rm,oma,mpegts,nut,iff"
_JOINERS = "\u200c\u200d"  # invisible characters that belong to Persian and Hindi words, and to emoji

_Values = dict[str, list[str]]


class _Query:
    """The tags to read: names per field, preferred names first, and the ID3v2 frames with these names."""

    def __init__(self, fields: Mapping[str, tuple[str, ...]], frames: frozenset[bytes]) -> None:
        self.fields, self.frames = fields, frames
        self.names = frozenset(name for names in fields.values() for name in names)


_TAGS, _LYRICS = _Query(_NAMES, _FRAMES), _Query(_LYRIC_NAMES, _LYRIC_FRAMES)


@dataclass(frozen=True, slots=True)
class FileTags:
    """Tags of one file; None if unknown. The `mb_` ids are MusicBrainz UUIDs in lower case."""

    title: str
    artist: str | None = None
    album_artist: str | None = None
    album: str | None = None
    track: int | None = None
    year: int | None = None
    genre: str | None = None
    mb_recording_id: str | None = None
    mb_artist_id: str | None = None
    mb_album_id: str | None = None


def read_tags(path: Path) -> FileTags:
    """Read an audio file's tags. Only the first of several artists is read; the file name replaces a missing title."""
    try:
        readers = (_read_notes, _read_container, _read_chunks, _read_id3v2, _read_apev2, _read_id3v1, _ffmpeg)
        values = _read_all(path, _TAGS, readers)
    except OSError as error:
        _log.warning("%s: tags cannot be read (%s); the file name is used instead.", path, error)
        values = {}
    parsers: dict[str, Callable[[str], Any]] = {"track": _parse_track, "year": _parse_year, "genre": _parse_genre}
    tags: dict[str, Any] = {}
    for field in _NAMES:
        parse = parsers.get(field, _parse_uuid if field.startswith("mb_") else _clean)
        parsed = map(parse, values.get(field, ()))
        tags[field] = next((value for value in parsed if value is not None), None)
    return FileTags(**tags | {"title": tags["title"] or _title_from_name(path)})


def read_lyric_tags(path: Path) -> list[str]:
    """Return the lyrics in an audio file's tags without FFmpeg, up to 64 kB each, plain lyrics before timed ones."""
    try:
        readers = (_read_container, _read_chunks, _read_id3v2, _read_apev2)
        return _read_all(path, _LYRICS, readers).get("lyrics", [])
    except OSError as error:
        _log.debug("%s: lyrics cannot be read (%s).", path, error)
        return []


def _read_all(path: Path, query: _Query, readers: Sequence[Callable[["FrugalFile", _Query], _Values]]) -> _Values:
    values: _Values = {}
    with path.open("rb") as raw:
        for read in readers:
            if values and read is _ffmpeg:
                break
            raw.seek(0)
            try:
                by_name = read(FrugalFile(raw), query)
            except Exception as error:
                # mutagen raises many kinds of errors for hostile files (struct, Unicode, memory, recursion and index
                # errors); the song can still be played
                _log.debug("%s: %s found no tags (%s).", path, read.__name__.lstrip("_"), error)
                continue
            for field, names in query.fields.items():
                if new := [value for name in names for value in by_name.get(name, ())]:
                    values.setdefault(field, []).extend(new)
    return values


class FrugalFile:
    """A file with a limit on the bytes read, because sizes in tags may be wrong and pictures may be huge."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._left = _MAX_BYTES
        self.seek, self.tell = raw.seek, raw.tell

    def read(self, n: int = -1) -> bytes:
        data = self._raw.read(min(n, self._left) if n >= 0 else self._left)
        self._left -= len(data) + _CALL_BYTES
        if self._left < 0:
            raise OSError(f"more than {_MAX_BYTES >> 20} MB of tags")
        return data


def _synchsafe(four: bytes) -> int:
    """Decode an ID3v2 size with seven bits per byte, or eight if an eighth bit is set, as some programs write it."""
    a, b, c, d = four
    return int.from_bytes(four) if (a | b | c | d) & 0x80 else a << 21 | b << 14 | c << 7 | d


def open_container(file: FrugalFile) -> Any:
    """Open a container that has its own tags (FLAC, Ogg, MP4 or ASF) with mutagen; return None for other files."""
    import mutagen
    from mutagen.asf import ASF
    from mutagen.flac import FLAC
    from mutagen.mp4 import MP4
    from mutagen.oggflac import OggFLAC
    from mutagen.oggopus import OggOpus
    from mutagen.oggspeex import OggSpeex
    from mutagen.oggtheora import OggTheora
    from mutagen.oggvorbis import OggVorbis

    head = file.read(10)
    if head[:3] == b"ID3" and len(head) == 10:
        file.seek(10 + _synchsafe(head[6:]))
        is_flac = file.read(4) == b"fLaC"
        file.seek(0)
        return FLAC(file) if is_flac else None
    file.seek(0)
    return mutagen.File(file, options=[FLAC, OggVorbis, OggOpus, OggSpeex, OggFLAC, OggTheora, MP4, ASF])


def _read_container(file: FrugalFile, query: _Query) -> _Values:
    from mutagen.mp4 import MP4Tags

    container = open_container(file)
    if container is None or container.tags is None:
        return {}
    values: _Values = {}
    for key, value in container.tags.items() if isinstance(container.tags, MP4Tags) else list(container.tags):
        name = key.lower().removeprefix("----:com.apple.itunes:")
        if name in query.names:
            values.setdefault(name, []).extend(map(_to_text, value if isinstance(value, list) else [value]))
    return values


def _to_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value[0] if isinstance(value, tuple) else value)  # MP4: (track, number of tracks)


def _read_chunks(file: FrugalFile, query: _Query) -> _Values:
    """Read tags in chunks: ID3v2 in WAV, AIFF and DSF; RIFF INFO; AIFF names and authors."""
    values: _Values = {}
    head = file.read(28)
    if head[:4] == b"DSD " and len(head) == 28:
        file.seek(int.from_bytes(head[20:], "little"))
        return _read_id3v2(file, query)
    if head[:4] not in (b"RIFF", b"RIFX", b"RF64", b"FORM"):
        return {}
    order = "<" if head[:4] in (b"RIFF", b"RF64") else ">"
    for name, start, size in file_chunks(file, order, 12, None):
        if name.lower() == b"id3 ":
            values.update(_read_id3v2(file, query))
        elif name == b"LIST" and file.read(4) == b"INFO":
            for item, _, length in file_chunks(file, order, start + 4, start + size):
                _add_text(values, item, file.read(min(length, _MAX_FRAME)))
        elif name in (b"NAME", b"AUTH") and head[:4] == b"FORM":
            _add_text(values, name, file.read(min(size, _MAX_FRAME)))
    return values


def file_chunks(file: FrugalFile, order: str, at: int, end: int | None) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, start and declared size of each chunk, with the file positioned at the chunk's start."""
    long_size = 0
    while end is None or at < end:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        name, size = struct.unpack(f"{order}4sI", head)
        if name == b"ds64":  # RF64: the size of the data chunk, which is too large for its own header
            long_size = int.from_bytes(file.read(16)[8:], "little")
            file.seek(at + 8)
        elif name == b"data" and size == 0xFFFFFFFF and long_size:
            size = long_size
        yield name, at + 8, size
        at += 8 + size + size % 2


def _add_text(values: _Values, name: bytes, data: bytes) -> None:
    values.setdefault(name.decode("latin-1").lower(), []).append(_decode(data.split(b"\0")[0]))


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # written by old Windows programs


def _read_id3v2(file: FrugalFile, query: _Query) -> _Values:
    tag = read_id3v2(file, query.frames)
    return {} if tag is None else _frame_texts(tag)


def read_id3v2(file: FrugalFile, wanted: frozenset[bytes], max_frame: int = _MAX_FRAME) -> Any:
    """Read an ID3v2 tag at the file's position; return None if there is none."""
    from mutagen.id3 import ID3

    head = file.read(10)
    if head[:3] != b"ID3" or len(head) < 10 or head[3] not in (2, 3, 4):
        return None
    version, flags = head[3], head[5]
    body, start = file, file.tell()
    end = start + _synchsafe(head[6:])
    if version < 4 and flags & 0x80:  # the whole tag is unsynchronized; in version 2.4, individual frames are
        data = file.read(end - start).replace(b"\xff\x00", b"\xff")
        body, start, end = FrugalFile(io.BytesIO(data)), 0, len(data)
        flags &= 0x7F
    if version > 2 and flags & 0x40:
        body.seek(start)
        size = body.read(4)
        if not _FRAME_NAME.fullmatch(size):  # otherwise the flag is set, but the extended header is missing
            start += _synchsafe(size) if version == 4 else 4 + int.from_bytes(size)
    # mutagen copies everything after each frame, so it gets only the wanted frames
    frames = b"".join(_select_frames(body, wanted, version, start, end, max_frame))
    tag = ID3()
    head = b"ID3" + bytes((version, 0, flags & 0x80)) + _seven_bits(len(frames))
    tag.load(io.BytesIO(head + frames), translate=False, load_v1=False)
    return tag


def _seven_bits(size: int) -> bytes:
    return bytes((size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127))


def _select_frames(
    file: FrugalFile, wanted: frozenset[bytes], version: int, at: int, end: int, max_frame: int
) -> Iterator[bytes]:
    name_length, head_length = (3, 6) if version == 2 else (4, 10)
    n_frames = 0
    while at < end and n_frames < _MAX_FRAMES:
        file.seek(at)
        head = file.read(head_length)
        name = head[:name_length]
        if len(head) < head_length or not _FRAME_NAME.fullmatch(name):
            return
        plain = int.from_bytes(head[name_length : 2 * name_length])
        size = plain
        if version == 4 and plain > 127:
            size = _synchsafe(head[4:8])
            if size != plain and not _frame_ends_at(file, at + 10 + size, end):
                size = plain  # iTunes once wrote plain sizes
        # compressed frames may expand to a thousand times their size
        is_compressed = head_length == 10 and head[9] & (0x08 if version == 4 else 0x80)
        if name.rstrip(b"\0 ") in wanted and 0 < size <= (_MAX_FRAME if is_compressed else max_frame):
            file.seek(at + head_length)
            data = file.read(size)
            if version == 4:
                head = head[:4] + _seven_bits(len(data)) + head[8:]
                if name[:1] == b"T" and data[:1] == b"\3" and head[8:] == b"\0\0" and not _is_utf8(data):
                    data = b"\0" + data[1:]  # Latin-1; mutagen would drop the frame
            yield head + data
            n_frames += 1
        at += head_length + size


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _frame_ends_at(file: FrugalFile, at: int, end: int) -> bool:
    file.seek(at)
    following = file.read(4)
    return at == end or (at < end and (following == bytes(4) or bool(_FRAME_NAME.fullmatch(following))))


def _frame_texts(tag: Any) -> _Values:
    values: _Values = {}
    for key, frame in tag.items():
        if frame.FrameID in ("USLT", "SYLT"):
            values.setdefault(frame.FrameID.lower(), []).append(_frame_lyrics(frame))
            continue
        texts = [frame.data] if hasattr(frame, "data") else frame.text
        values.setdefault(key.lower().removeprefix("txxx:"), []).extend(map(_to_text, texts))
    return values


def _frame_lyrics(frame: Any) -> str:
    """Return the lyrics in a frame. Timed parts are syllables, or lines if no part begins or ends with a space."""
    if frame.FrameID == "USLT":
        return str(frame.text)
    parts = [text for text, _ in frame.text] if frame.type in _SUNG else []
    has_breaks = any(part[:1].isspace() or part[-1:].isspace() for part in parts)
    return ("" if has_breaks else "\n").join(parts)


def _read_apev2(file: FrugalFile, query: _Query) -> _Values:
    """Read APEv2 at the end, before ID3v1, or at the start; mutagen would reject the whole tag for one wrong byte."""
    values: _Values = {}
    at, end, count = _find_apev2(file)
    for _ in range(count):
        file.seek(at)
        head = file.read(8 + 256)
        name, nul, _rest = head[8:].partition(b"\0")
        if at >= end or not nul:
            break
        size, flags = struct.unpack("<II", head[:8])
        start = at + 8 + len(name) + 1
        key = name.decode("latin-1").lower()
        if key in query.names and flags & 6 == 0 and size <= _MAX_FRAME:  # text, not a picture or a link
            file.seek(start)
            values.setdefault(key, []).extend(_decode(file.read(size)).split("\0"))
        at = start + size
    return values


def _find_apev2(file: FrugalFile) -> tuple[int, int, int]:
    """Return the start, end and number of items of an APEv2 tag; all 0 if there is none."""
    ends = [file.seek(0, 2)]
    if ends[0] >= 160:
        file.seek(-128 - 15, 2)
        before = file.read(18)
        if before[15:] == b"TAG":
            ends.append(ends[0] - 128)
            if before[6:15] == b"LYRICS200" and before[:6].isdigit():
                ends.append(ends[1] - 15 - int(before[:6]))
    for end in (*ends, 32):
        if end < 32:
            continue
        file.seek(end - 32)
        mark = file.read(32)
        if mark[:8] == b"APETAGEX" and len(mark) == 32:
            size, count, flags = struct.unpack("<12xIII8x", mark)
            start = end if flags & 1 << 29 else end - size  # header or footer
            return max(start, 0), start + size - 32, min(count, _MAX_ITEMS)
    return 0, 0, 0


def _read_id3v1(file: FrugalFile, _query: _Query) -> _Values:
    from mutagen.id3 import ParseID3v1

    if file.seek(0, 2) < 128:
        return {}
    file.seek(-128, 2)
    return _frame_texts(ParseID3v1(file.read(128)) or {})


def _read_notes(file: FrugalFile, _query: _Query) -> _Values:
    return _group(audio.note_tags(file))


def _ffmpeg(file: FrugalFile, _query: _Query) -> _Values:
    """Read tags with FFmpeg, for example in Matroska, CAF and W64, or if mutagen fails."""
    return _group(audio.container_tags(file, _FFMPEG_FORMATS))


def _group(tags: list[tuple[str, str]]) -> _Values:
    values: _Values = {}
    for key, value in tags:
        values.setdefault(key.lower(), []).append(value)
    return values


def _clean(text: str) -> str | None:
    """Return one line of readable text; None if nothing is left."""
    text = text[: 4 * _LONGEST]
    if not text.isprintable():
        # direction marks would affect the whole page, so format characters are removed
        text = "".join(
            c if c.isprintable() or c in _JOINERS else "" if unicodedata.category(c) == "Cf" else " " for c in text
        )
    text = " ".join(text.split())[:_LONGEST].strip()
    # text that consists of replacement characters is useless
    return text if text.strip("\ufffd " + _JOINERS) else None


def _title_from_name(path: Path) -> str:
    """Return the file name without its extension and without a leading track number."""
    stem = _clean(path.stem.encode("utf-8", "replace").decode()) or "untitled"
    return re.sub(r"^\d{1,3}\s*[-._ ]\s*", "", stem).strip() or stem


def _parse_track(text: str) -> int | None:
    number = re.search(r"\d+", text[:_LONGEST])
    return int(number[0]) if number and 1 <= int(number[0]) <= 9999 else None


def _parse_year(text: str) -> int | None:
    years = map(int, _YEAR.findall(text[:_LONGEST]))
    return next((year for year in years if 1000 <= year <= 2999), None)


def _parse_genre(text: str) -> str | None:
    """Return a genre's name; "17", "(17)" and "(17)Rock" are Rock, according to the ID3v1 table."""
    from mutagen.id3 import TCON

    name = _clean(text)
    numbered = re.fullmatch(r"((?:\(\d{1,3}\))+|\d{1,3})(.*)", name or "")
    if not name or not numbered:
        return name
    if numbered[1][0] == "(" and numbered[2].strip():
        return numbered[2].strip()
    number = int(re.findall(r"\d+", numbered[1])[0])
    if numbered[2]:
        return name
    return TCON.GENRES[number] if number < len(TCON.GENRES) else None


def _parse_uuid(text: str) -> str | None:
    match = _WHOLE_MBID.search(text[: 4 * _LONGEST].lower())
    return match[0] if match else None
