"""What a file says of itself: title, artist and the rest, read by mutagen.

Tags are often wrong, missing or monstrous. Whatever happens here, a file that plays stays playable:
the worst outcome is a song named after its file. The bytes decide what a file is, never its ending. A
file may carry several kinds of tags; they are asked in this order, and for each field the first that
has a sensible value is taken: those of the container (FLAC, Ogg, MP4, ASF), ID3v2 (in front, or in a
chunk of WAV, AIFF and DSF) before RIFF INFO, APEv2, ID3v1. FFmpeg is asked where none of these says
anything. Pictures are never decoded, those in ID3 and APEv2 not even read.
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
"""A pattern of MusicBrainz ids, in lower case."""

_log = logging.getLogger(__name__)
_LONGEST = 300  # characters; what is longer is no name but a mistake
_MAX_BYTES = 64 << 20  # that one kind of tags may have read: pictures in Ogg and MP4 come along
_CALL_BYTES = 256  # what one call counts, whatever it reads: millions of tiny items end as well
_MAX_FRAME = 1 << 16
_MAX_FRAMES = 1000  # of text that are looked at in one ID3 tag
_MAX_ITEMS = 50_000  # of one APEv2 tag

# Names of the fields in order of preference, in lower case, whatever the format: ID3v2 frames, Vorbis and
# APEv2 keys, MP4 atoms, ASF attributes, RIFF INFO and AIFF chunks, FFmpeg's names.
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
    # MusicBrainz calls the recording's id "track id" in every format but ID3
    "mb_recording_id": (
        *("ufid:http://musicbrainz.org", "musicbrainz_trackid"),
        *("musicbrainz track id", "musicbrainz/track id"),
    ),
    "mb_artist_id": ("musicbrainz_artistid", "musicbrainz artist id", "musicbrainz/artist id"),
    "mb_album_id": ("musicbrainz_albumid", "musicbrainz album id", "musicbrainz/album id"),
}
_FRAMES = frozenset(  # of ID3v2.3 and 2.4, then the same of 2.2
    b"TIT2 TPE1 TPE2 TALB TRCK TDRC TYER TDOR TORY TCON TXXX UFID TT2 TP1 TP2 TAL TRK TYE TOR TCO TXX UFI".split()
)
# The same of lyrics, which a scan leaves unread: they take up more than all the rest.
_LYRIC_NAMES = {
    "lyrics": (
        *("uslt", "unsyncedlyrics", "unsynced lyrics", "lyrics", "\xa9lyr", "wm/lyrics"),
        *("sylt", "syncedlyrics"),
    )
}
_LYRIC_FRAMES = frozenset(b"USLT SYLT TXXX ULT SLT TXX".split())
_SUNG = (0, 1, 2)  # content of SYLT: other, lyrics, transcription; the rest is chords, events, trivia
_FRAME_NAME = re.compile(rb"[A-Z][A-Z0-9]{2}[A-Z0-9 \0]?")
_WHOLE_MBID = re.compile(f"(?<![0-9a-f]){MBID}(?![0-9a-f])")
# "2003", "2003-05-01", "01/05/2003", "200305", "20030501", but no part of another number
_YEAR = re.compile(r"(?<!\d)\d{4}(?=(?:\d\d){0,2}(?!\d))")
# Containers that mutagen does not know or may refuse. Not WAV, AIFF and bare streams such as MP3: all that
# they may carry has been looked for, and FFmpeg can spend seconds on a damaged WAV.
_FFMPEG = "matroska,webm,caf,w64,ogg,flac,asf,mov,mp4,m4a,3gp,mpc8,avi,rm,oma,mpegts,nut,iff"
_JOINERS = "\u200c\u200d"  # invisible, but they spell words of Persian and Hindi, and emoji

_Found = dict[str, list[str]]


class _Wanted:
    """What is asked of a file: names by field, best first, and the frames of ID3v2 that hold them."""

    def __init__(self, names: Mapping[str, tuple[str, ...]], frames: frozenset[bytes]) -> None:
        self.fields, self.frames = names, frames
        self.names = frozenset(name for each in names.values() for name in each)


_TAGS, _LYRICS = _Wanted(_NAMES, _FRAMES), _Wanted(_LYRIC_NAMES, _LYRIC_FRAMES)


@dataclass(frozen=True, slots=True)
class FileTags:
    """Tags of one file; None where the file does not say.

    The `mb_` ids are those of MusicBrainz, UUIDs in lower case.
    """

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
    """Read the tags of an audio file, of several artists the first; without a title, the file's name is the title."""
    try:
        found = _gather(path, _TAGS, (_own, _chunked, _id3v2, _apev2, _id3v1, _from_ffmpeg))
    except OSError as error:
        _log.warning("%s: tags cannot be read (%s); the file's name is used instead.", path, error)
        found = {}

    def first(field: str, parse: Callable[[str], Any]) -> Any:
        parsed = (parse(text) for text in found.get(field, ()))
        return next((value for value in parsed if value is not None), None)

    parsers = {"track": _track, "year": _year, "genre": _genre}
    others = {field: _uuid if field.startswith("mb_") else _clean for field in _NAMES}
    tags = {field: first(field, parse) for field, parse in (others | parsers).items()}
    return FileTags(**tags | {"title": tags["title"] or _title_from_name(path)})


def read_lyric_tags(path: Path) -> list[str]:
    """Texts of lyrics in the tags of an audio file, as they stand there.

    Plain texts come before timed ones, most often the same words again. FFmpeg does not look for them: it would open
    most files in vain. Frames and items beyond 64 kB are left out.
    """
    try:
        return _gather(path, _LYRICS, (_own, _chunked, _id3v2, _apev2)).get("lyrics", [])
    except OSError as error:
        _log.debug("%s: lyrics cannot be read (%s).", path, error)
        return []


def _gather(path: Path, wanted: _Wanted, readers: Sequence[Callable[["FrugalFile", _Wanted], _Found]]) -> _Found:
    found: _Found = {}
    with path.open("rb") as raw:
        for read in readers:
            if found and read is _from_ffmpeg:
                break
            raw.seek(0)
            try:
                named = read(FrugalFile(raw), wanted)
            except Exception as error:
                # mutagen raises far more than its own MutagenError on hostile files (struct, Unicode,
                # memory, recursion and index errors): whatever it is, the song itself can still be played.
                _log.debug("%s: %s found no tags (%s).", path, read.__name__[1:], error)
                continue
            for field, names in wanted.fields.items():
                if values := [value for name in names for value in named.get(name, ())]:
                    found.setdefault(field, []).extend(values)
    return found


# What is read


class FrugalFile:
    """A file that reads so much and no more: sizes in tags may lie, and pictures may be huge."""

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
    """A size of ID3v2, seven bits a byte; plain where a byte has its eighth bit, as bad writers have it."""
    a, b, c, d = four
    return int.from_bytes(four) if (a | b | c | d) & 0x80 else a << 21 | b << 14 | c << 7 | d


def open_container(file: FrugalFile) -> Any:
    """A file of a container that has its own kind of tags, FLAC, Ogg, MP4 or ASF, as mutagen sees it; else None."""
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


def _own(file: FrugalFile, wanted: _Wanted) -> _Found:
    from mutagen.mp4 import MP4Tags

    container = open_container(file)
    if container is None or container.tags is None:
        return {}
    found: _Found = {}
    for key, value in container.tags.items() if isinstance(container.tags, MP4Tags) else list(container.tags):
        name = key.lower().removeprefix("----:com.apple.itunes:")
        if name in wanted.names:
            found.setdefault(name, []).extend(map(_text, value if isinstance(value, list) else [value]))
    return found


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value[0] if isinstance(value, tuple) else value)  # MP4: (track, of so many)


def _chunked(file: FrugalFile, wanted: _Wanted) -> _Found:
    """Tags in chunks: ID3v2 in WAV, AIFF and DSF; RIFF INFO; names of AIFF."""
    found: _Found = {}
    head = file.read(28)
    if head[:4] == b"DSD " and len(head) == 28:
        file.seek(int.from_bytes(head[20:], "little"))
        return _id3v2(file, wanted)
    if head[:4] not in (b"RIFF", b"RIFX", b"RF64", b"FORM"):
        return {}
    order = "<" if head[:4] in (b"RIFF", b"RF64") else ">"
    for name, start, size in file_chunks(file, order, 12, None):
        if name.lower() == b"id3 ":
            found.update(_id3v2(file, wanted))
        elif name == b"LIST" and file.read(4) == b"INFO":
            for item, _, length in file_chunks(file, order, start + 4, start + size):
                _add_text(found, item, file.read(min(length, _MAX_FRAME)))
        elif name in (b"NAME", b"AUTH") and head[:4] == b"FORM":
            _add_text(found, name, file.read(min(size, _MAX_FRAME)))
    return found


def file_chunks(file: FrugalFile, order: str, at: int, end: int | None) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, start and size of chunks, the file at each start; sizes are what the file claims."""
    long_size = 0
    while end is None or at < end:
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        name, size = struct.unpack(f"{order}4sI", head)
        if name == b"ds64":  # of RF64: the size of the sound, which its own chunk cannot hold
            long_size = int.from_bytes(file.read(16)[8:], "little")
            file.seek(at + 8)
        elif name == b"data" and size == 0xFFFFFFFF and long_size:
            size = long_size
        yield name, at + 8, size
        at += 8 + size + size % 2


def _add_text(found: _Found, name: bytes, data: bytes) -> None:
    found.setdefault(name.decode("latin-1").lower(), []).append(_decode(data.split(b"\0")[0]))


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")  # what old Windows programs wrote, where nothing is said


def _id3v2(file: FrugalFile, wanted: _Wanted) -> _Found:
    tag = read_id3v2(file, wanted.frames)
    return {} if tag is None else _frame_texts(tag)


def read_id3v2(file: FrugalFile, wanted: frozenset[bytes], max_frame: int = _MAX_FRAME) -> Any:
    """ID3v2 at the file's position, or None. mutagen sees the wanted frames only: it copies all behind a frame."""
    from mutagen.id3 import ID3

    head = file.read(10)
    if head[:3] != b"ID3" or len(head) < 10 or head[3] not in (2, 3, 4):
        return None
    version, flags = head[3], head[5]
    body, start = file, file.tell()
    end = start + _synchsafe(head[6:])
    if version < 4 and flags & 0x80:  # unsynchronised as a whole; in 2.4 each frame by itself
        data = file.read(end - start).replace(b"\xff\x00", b"\xff")
        body, start, end = FrugalFile(io.BytesIO(data)), 0, len(data)
        flags &= 0x7F
    if version > 2 and flags & 0x40:
        body.seek(start)
        size = body.read(4)
        if not _FRAME_NAME.fullmatch(size):  # else the flag is set, but the header is not there
            start += _synchsafe(size) if version == 4 else 4 + int.from_bytes(size)
    frames = b"".join(_wanted_frames(body, wanted, version, start, end, max_frame))
    tag = ID3()
    head = b"ID3" + bytes((version, 0, flags & 0x80)) + _seven_bits(len(frames))
    tag.load(io.BytesIO(head + frames), translate=False, load_v1=False)
    return tag


def _seven_bits(size: int) -> bytes:
    return bytes((size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127))


def _wanted_frames(
    file: FrugalFile, wanted: frozenset[bytes], version: int, at: int, end: int, max_frame: int
) -> Iterator[bytes]:
    """Yield the frames that name a field, headers and all, and leave the others unread."""
    name_length, head_length = (3, 6) if version == 2 else (4, 10)
    n_kept = 0
    while at < end and n_kept < _MAX_FRAMES:
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
        # what is packed may become a thousand times larger
        is_packed = head_length == 10 and head[9] & (0x08 if version == 4 else 0x80)
        if name.rstrip(b"\0 ") in wanted and 0 < size <= (_MAX_FRAME if is_packed else max_frame):
            file.seek(at + head_length)
            data = file.read(size)
            n = len(data)
            if version == 4:
                head = head[:4] + _seven_bits(n) + head[8:]
                if name[:1] == b"T" and data[:1] == b"\3" and head[8:] == b"\0\0" and not _is_utf8(data):
                    data = b"\0" + data[1:]  # mutagen would drop the frame: Latin-1 it is, then
            yield head + data
            n_kept += 1
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


def _frame_texts(tag: Any) -> _Found:
    found: _Found = {}
    for key, frame in tag.items():
        if frame.FrameID in ("USLT", "SYLT"):
            found.setdefault(frame.FrameID.lower(), []).append(_sung(frame))
            continue
        values = [frame.data] if hasattr(frame, "data") else frame.text
        found.setdefault(key.lower().removeprefix("txxx:"), []).extend(map(_text, values))
    return found


def _sung(frame: Any) -> str:
    """The text of a frame of lyrics; timed ones are syllables, or lines by writers that put no breaks between."""
    if frame.FrameID == "USLT":
        return str(frame.text)
    parts = [text for text, _ in frame.text] if frame.type in _SUNG else []
    has_breaks = any(part[:1].isspace() or part[-1:].isspace() for part in parts)
    return ("" if has_breaks else "\n").join(parts)


def _apev2(file: FrugalFile, wanted: _Wanted) -> _Found:
    """APEv2 at the end, in front of ID3v1, or in front of all; mutagen gives all up for one wrong byte."""
    found: _Found = {}
    at, end, count = _ape_place(file)
    for _ in range(count):
        file.seek(at)
        head = file.read(8 + 256)
        name, nul, _rest = head[8:].partition(b"\0")
        if at >= end or not nul:
            break
        size, flags = struct.unpack("<II", head[:8])
        start = at + 8 + len(name) + 1
        key = name.decode("latin-1").lower()
        if key in wanted.names and flags & 6 == 0 and size <= _MAX_FRAME:  # text, not a picture or a link
            file.seek(start)
            found.setdefault(key, []).extend(_decode(file.read(size)).split("\0"))
        at = start + size
    return found


def _ape_place(file: FrugalFile) -> tuple[int, int, int]:
    """Where the items of an APEv2 tag begin and end, and how many they are; none without a tag."""
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
            start = end if flags & 1 << 29 else end - size  # is it the header or the footer?
            return max(start, 0), start + size - 32, min(count, _MAX_ITEMS)
    return 0, 0, 0


def _id3v1(file: FrugalFile, _wanted: _Wanted) -> _Found:
    from mutagen.id3 import ParseID3v1

    if file.seek(0, 2) < 128:
        return {}
    file.seek(-128, 2)
    return _frame_texts(ParseID3v1(file.read(128)) or {})


def _from_ffmpeg(file: FrugalFile, _wanted: _Wanted) -> _Found:
    """What FFmpeg finds, in Matroska, CAF and W64 for instance, or in tags that mutagen refuses."""
    found: _Found = {}
    for key, value in audio.container_tags(file, _FFMPEG):
        found.setdefault(key.lower(), []).append(value)
    return found


# What it means


def _clean(text: str) -> str | None:
    """One line of readable text; None if nothing is left."""
    text = text[: 4 * _LONGEST]
    if not text.isprintable():
        # marks that turn the direction of reading would turn the whole page; so formats vanish
        text = "".join(
            c if c.isprintable() or c in _JOINERS else "" if unicodedata.category(c) == "Cf" else " " for c in text
        )
    text = " ".join(text.split())[:_LONGEST].strip()
    # text of replacement characters alone was lost long ago
    return text if text.strip("\ufffd " + _JOINERS) else None


def _title_from_name(path: Path) -> str:
    """The file's name without its ending and a leading track number."""
    stem = _clean(path.stem.encode("utf-8", "replace").decode()) or "untitled"
    return re.sub(r"^\d{1,3}\s*[-._ ]\s*", "", stem).strip() or stem


def _track(text: str) -> int | None:
    found = re.search(r"\d+", text[:_LONGEST])
    return int(found[0]) if found and 1 <= int(found[0]) <= 9999 else None


def _year(text: str) -> int | None:
    years = map(int, _YEAR.findall(text[:_LONGEST]))
    return next((year for year in years if 1000 <= year <= 2999), None)


def _genre(text: str) -> str | None:
    """A genre's name; "17", "(17)" and "(17)Rock" are Rock, by the table of ID3v1."""
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


def _uuid(text: str) -> str | None:
    found = _WHOLE_MBID.search(text[: 4 * _LONGEST].lower())
    return found[0] if found else None
