"""Playlists that players, services and data sets keep as files: of players each file is one list.

=================  ===============================================================================
m3u                Paths or addresses, one a line; ``#EXTINF:seconds,artist - title``, ``#EXTART``, ``#EXTALB`` and
                   ``#PLAYLIST`` say what they are. Lines that are not UTF-8 are taken as Windows wrote them.
pls                ``[playlist]`` with ``File1=``, ``Title1=``, ...; the numbers are the order
xspf               XML with a ``track`` for each song; also without the name space, and with bare paths
jspf               XSPF as JSON, as ListenBrainz exports it; also without the outer object
spotify_playlists  ``Playlist1.json`` of "Account data": every list of the account
aotm               AotM-2011, lists of Art of the Mix (McFee and Lanckriet, "Hypergraph models of playlist
                   dialects", ISMIR 2012): mix_id, category, and songs as [[artist, title], ids]
=================  ===============================================================================

An entry is a song by its place (:mod:`musicsim.library.importing.places`), by its names, or by both. HLS, the
other use of M3U8, names parts of a stream and is refused. XML that declares a document type is refused before
anything in it is expanded: no playlist has one, and attacks by entities begin with it.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote_plus
from xml.parsers import expat

from musicsim.errors import LibraryError
from musicsim.library.importing.json_formats import Entries, Record, plain, records
from musicsim.library.importing.places import from_address, is_web, resolved, spelled_out
from musicsim.library.importing.records import NO_NAME, Gatherer, NamedSong
from musicsim.library.importing.sources import LONGEST, JsonStream, RawBytes, Source, TextLines
from musicsim.library.tags.file_tags import MBID

HLS = "belongs to a stream in parts (HLS), which names no songs. Import playlists of songs."
NO_SONGS = "list without songs"
_EXTINF = re.compile(r'#EXTINF:[^",]*(?:"[^"]*"[^",]*)*,(.*)', re.IGNORECASE)
_DIRECTIVE = re.compile(r"#(PLAYLIST|EXTART|EXTALB):(.*)", re.IGNORECASE)
_ENTRY = re.compile(r"(file|title)(\d{1,9})\s*=(.*)", re.IGNORECASE | re.DOTALL)
_GNOME_TITLE = re.compile(r"x-gnome-title\s*=(.*)", re.IGNORECASE)
_RECORDING = re.compile(rf"musicbrainz\.org/(?:recording|track)/({MBID})", re.IGNORECASE)
_MAX_LIST = 1 << 26  # characters: Spotify's longest lists, of 10 000 songs, have 4 million
_DEEPEST = 64  # elements in each other; lists have four
_TRACK_FIELDS = ("location", "identifier", "title", "creator", "album")


def list_name(source: Source) -> str:
    """Name of a list that has no title: the file's, without its ending."""
    name = PurePosixPath(source.member).name if source.member is not None else source.path.name
    return plain(spelled_out(name.rpartition(".")[0] or name))


def list_folder(source: Source) -> Path | None:
    """The folder that paths of a list are relative to; None in an archive."""
    return source.path.absolute().parent if source.member is None else None


def recording_id(identifiers: Iterable[str]) -> str:
    """The MusicBrainz id of the recording that one of the identifiers names; "" if none does."""
    found = (_RECORDING.search(identifier) for identifier in identifiers)
    return next((match[1].lower() for match in found if match), "")


def keep_list(rows: Gatherer, source: Source, title: str, category: str, songs: list[NamedSong]) -> None:
    """Enter a list's songs in their order; those that a file says nothing of are left out and counted."""
    if not songs:
        rows.skip(NO_SONGS, source.member or source.path.name)
        return
    group = rows.new_list(plain(title) or list_name(source), category)
    for position, song in enumerate(songs, 1):
        if song.place or (song.artist and song.title):
            rows.add(song, group, position)
        else:
            rows.skip(NO_NAME, f"{source.member or source.path.name}, entry {position}")


def _named(text: str, place: str, artist: str = "", album: str = "") -> NamedSong:
    """A song by the one line that M3U and PLS have for its names: "artist - title", or a title."""
    text = spelled_out(text)
    lead, dash, rest = text.partition(" - ")
    if not artist and dash and lead.strip() and rest.strip():
        artist, text = lead, rest
    return NamedSong(plain(artist), plain(text), plain(album), "", place)


def read_m3u(lines: TextLines, rows: Gatherer) -> None:
    """M3U and M3U8, extended or not; 0.5 kB an entry.

    Raises LibraryError if it is HLS, or a line holds a NUL byte or is longer than a million characters.
    """
    songs: list[NamedSong] = []
    folder, title = list_folder(lines.source), ""
    names, said = "", {"EXTART": "", "EXTALB": ""}
    for line in lines:
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        if not text.startswith("#"):
            songs.append(_named(names, resolved(text, folder), said["EXTART"], said["EXTALB"]))
            names, said = "", {"EXTART": "", "EXTALB": ""}
        elif text.upper().startswith("#EXT-X-"):
            raise lines.fault(HLS)
        elif info := _EXTINF.match(text):
            names = info[1]
        elif directive := _DIRECTIVE.match(text):
            if directive[1].upper() == "PLAYLIST":
                title = title or spelled_out(directive[2])
            else:
                said[directive[1].upper()] = spelled_out(directive[2])
    keep_list(rows, lines.source, title, "", songs)


def read_pls(lines: TextLines, rows: Gatherer) -> None:
    """PLS; entries go by their numbers, and a title without a file is no entry."""
    files: dict[int, str] = {}
    titles: dict[int, str] = {}
    name = ""
    for line in lines:
        text = line.rstrip("\r\n").lstrip()
        if entry := _ENTRY.match(text):
            (files if entry[1].lower() == "file" else titles)[int(entry[2])] = entry[3]
        elif heading := _GNOME_TITLE.match(text):
            name = spelled_out(heading[1])
    folder = list_folder(lines.source)
    songs = [
        _named(titles.get(number, ""), resolved(files[number], folder))
        for number in sorted(files)
        if files[number].strip()
    ]
    keep_list(rows, lines.source, name, "", songs)


def read_xspf(data: RawBytes, rows: Gatherer) -> None:
    """XSPF of any version; 0.5 kB an entry, whatever else the file holds.

    Raises LibraryError if it is not XML, is cut off, declares a document type or entities, or is no playlist.
    """
    reader = _Xspf(data)
    try:
        for chunk in data:
            reader.parser.Parse(chunk, False)
            data.line = reader.parser.CurrentLineNumber
        reader.parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:  # ValueError: encodings that are none, of several bytes
        data.line = getattr(error, "lineno", reader.parser.CurrentLineNumber)
        reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else str(error)
        raise data.fault(f"is not XML ({reason}), or the file is cut off. Export it again.") from error
    except LookupError as error:
        raise data.fault("names an encoding that is not known. Save it as UTF-8.") from error
    keep_list(rows, data.source, reader.title, "", reader.songs)


class _Xspf:
    """What a parser of XML calls: entries are taken as they end, and nothing else is kept."""

    def __init__(self, data: RawBytes) -> None:
        self.title = ""
        self.songs: list[NamedSong] = []
        self._data, self._folder = data, list_folder(data.source)
        self._open: list[str] = []
        self._track: dict[str, list[str]] = {}
        self._text: list[str] = []
        self._length = 0
        self.parser = parser = expat.ParserCreate(data.source.encoding)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._say

    def _fault(self, reason: str) -> LibraryError:
        self._data.line = self.parser.CurrentLineNumber
        return self._data.fault(reason)

    def _refuse(self, *_: object) -> None:
        raise self._fault("declares a document type or entities, as no playlist does: it may harm, and is not read.")

    def _start(self, tag: str, _: dict[str, str]) -> None:
        name = tag.rpartition(":")[2].lower()
        if not self._open and name != "playlist":
            raise self._fault("does not begin with <playlist>: this is not an XSPF playlist.")
        if len(self._open) >= _DEEPEST:
            raise self._fault("is nested too deeply for a playlist.")
        self._open.append(name)
        self._text, self._length = [], 0

    def _say(self, text: str) -> None:
        self._length += len(text)
        if self._length > LONGEST:
            raise self._fault(f"holds a text longer than {LONGEST} characters: this is not a playlist.")
        self._text.append(text)

    def _end(self, _: str) -> None:
        name, text = self._open.pop(), "".join(self._text)
        self._text, self._length = [], 0
        if self._open == ["playlist"] and name == "title":
            self.title = text
        elif self._open == ["playlist", "tracklist", "track"] and name in _TRACK_FIELDS:
            self._track.setdefault(name, []).append(text)
        elif self._open == ["playlist", "tracklist"] and name == "track":
            self.songs.append(song_of(self._track, self._folder))
            self._track = {}


def song_of(track: dict[str, list[str]], folder: Path | None) -> NamedSong:
    """The song of a track of XSPF or JSPF by the texts of its fields; of several locations a file goes first."""
    locations = [from_address(text) for text in track.get("location", ())]
    place = min(locations, key=is_web, default="")
    artist, title, album = (plain(" ".join(track.get(name, ())[:1])) for name in ("creator", "title", "album"))
    mbid = recording_id(track.get("identifier", ()))
    return NamedSong(artist, title, album, mbid, resolved(place, folder))


def read_jspf(document: JsonStream, rows: Gatherer) -> None:
    """JSPF; `location` and `identifier` may be one text or a list of them."""
    folder, songs = list_folder(document.source), []
    for track in records(document, "playlist", "track", "tracks"):
        fields = {name: [track.text(name)] for name in ("title", "creator", "album")}
        fields |= {name: track.texts(name) for name in ("location", "identifier")}
        songs.append(song_of(fields, folder))
    keep_list(rows, document.source, document.title, "", songs)


def read_spotify_playlists(document: JsonStream, rows: Gatherer) -> None:
    """Lists of a Spotify account; episodes are left out and counted.

    Memory: the longest list, at most 64 million characters of it.
    """
    document.longest = _MAX_LIST
    for entry in records(document, "playlists"):
        items = entry.fields.get("items") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise document.fault("has items that are no list of records.")
        songs = [_spotify_song(Record(document, item)) for item in items]
        for _ in range(songs.count(None)):
            rows.skip("episode or audiobook", document.place)
        keep_list(rows, document.source, entry.text("name"), "", [song for song in songs if song is not None])


def _spotify_song(item: Record) -> NamedSong | None:
    track, local = item.object("track"), item.object("localTrack")
    if track.fields or "track" not in item.fields:
        return (track if track.fields else item).song("artistName", "trackName", "albumName")
    # spotify:local:artist:album:title:seconds, each part quoted
    parts = local.text("uri").split(":")
    if len(parts) >= 5 and parts[:2] == ["spotify", "local"]:
        artist, album, title = (plain(unquote_plus(part)) for part in parts[2:5])
        return NamedSong(artist, title, album)
    return None if item.fields.get("episode") or item.fields.get("audiobook") else NamedSong("", "")


def read_aotm(entries: Entries, rows: Gatherer) -> None:
    """AotM-2011: lists are called by their number, their category is kept."""
    for entry in records(entries):
        listed = entry.fields.get("playlist")
        if not isinstance(listed, list):
            raise entries.fault("has no list under playlist: this is not an AotM-2011 mix.")
        songs = [_aotm_song(entries, item) for item in listed]
        name = f"AotM {str(entry.fields.get('mix_id', ''))[:40]}"
        keep_list(rows, entries.source, name, entry.text("category"), songs)


def _aotm_song(entries: Entries, item: Any) -> NamedSong:
    """A song as [[artist, title], ids], [artist, title] or an object of both."""
    if isinstance(item, dict):
        return Record(entries, item).song("artist", "title")
    names = item[0] if isinstance(item, list) and item and isinstance(item[0], list) else item
    if not isinstance(names, list) or len(names) < 2 or not all(isinstance(n, str) for n in names[:2]):
        raise entries.fault(f"holds {str(item)[:40]!r} where artist and title should be.")
    return NamedSong(plain(names[0]), plain(names[1]))
