"""Playlist files from players, services and data sets; a player's file contains one playlist.

Formats: M3U, PLS, XSPF, JSPF, Spotify's ``Playlist1.json``, and AotM-2011 (McFee and Lanckriet, "Hypergraph models of
playlist dialects", ISMIR 2012). An entry has a place (:mod:`musicsim.library.importing.places`), names, or both. HLS,
the other use of M3U8, is refused. XML with a document type is also refused, because playlists never have one, and
entity attacks need one.
"""

import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote_plus
from xml.parsers import expat

from musicsim.errors import LibraryError
from musicsim.library.importing.json_formats import Entries, Record, plain_name, records
from musicsim.library.importing.places import from_address, is_web, resolve_place, spell_out
from musicsim.library.importing.records import NO_NAME, Gatherer, NamedSong
from musicsim.library.importing.sources import LONGEST, JsonStream, RawBytes, Source, TextLines
from musicsim.library.tags.file_tags import MBID

HLS = "belongs to a segmented stream (HLS), not to a list of songs. Import a playlist of songs instead."
_EXTINF = re.compile(r'#EXTINF:[^",]*(?:"[^"]*"[^",]*)*,(.*)', re.IGNORECASE)
_DIRECTIVE = re.compile(r"#(PLAYLIST|EXTART|EXTALB):(.*)", re.IGNORECASE)
_ENTRY = re.compile(r"(file|title)(\d{1,9})\s*=(.*)", re.IGNORECASE | re.DOTALL)
_GNOME_TITLE = re.compile(r"x-gnome-title\s*=(.*)", re.IGNORECASE)
_RECORDING = re.compile(rf"musicbrainz\.org/(?:recording|track)/({MBID})", re.IGNORECASE)
_MAX_LIST = 1 << 26  # maximum number of characters; Spotify's longest playlists (10,000 songs) have 4 million
_DEEPEST = 64  # maximum depth of nested elements; playlists have four levels
_TRACK_FIELDS = ("location", "identifier", "title", "creator", "album")


def _folder(source: Source) -> Path | None:
    """Return the folder that paths in a playlist are relative to; None in an archive."""
    return source.path.absolute().parent if source.member is None else None


def _add_list(rows: Gatherer, source: Source, title: str, category: str, songs: list[NamedSong]) -> None:
    """Add a playlist, named after its file by default; entries without names or a place are left out and counted."""
    if not songs:
        rows.skip("list without songs", source.member or source.path.name)
        return
    name = PurePosixPath(source.member).name if source.member is not None else source.path.name
    group = rows.new_list(plain_name(title) or plain_name(spell_out(name.rpartition(".")[0] or name)), category)
    for position, song in enumerate(songs, 1):
        if song.place or (song.artist and song.title):
            rows.add(song, group, position)
        else:
            rows.skip(NO_NAME, f"{source.member or source.path.name}, entry {position}")


def _parse_names(text: str, place: str, artist: str = "", album: str = "") -> NamedSong:
    """Parse the names of a song in M3U and PLS: "artist - title", or just a title."""
    text = spell_out(text)
    lead, dash, rest = text.partition(" - ")
    if not artist and dash and lead.strip() and rest.strip():
        artist, text = lead, rest
    return NamedSong(plain_name(artist), plain_name(text), plain_name(album), "", place)


def read_m3u(lines: TextLines, rows: Gatherer) -> None:
    """Read plain or extended M3U and M3U8; 0.5 kB per entry. Raises LibraryError for HLS or overlong lines."""
    songs: list[NamedSong] = []
    folder, title = _folder(lines.source), ""
    names, fields = "", {"EXTART": "", "EXTALB": ""}
    for line in lines:
        text = line.rstrip("\r\n")
        if not text.strip():
            continue
        if not text.startswith("#"):
            songs.append(_parse_names(names, resolve_place(text, folder), fields["EXTART"], fields["EXTALB"]))
            names, fields = "", {"EXTART": "", "EXTALB": ""}
        elif text.upper().startswith("#EXT-X-"):
            raise lines.fault(HLS)
        elif info := _EXTINF.match(text):
            names = info[1]
        elif directive := _DIRECTIVE.match(text):
            if directive[1].upper() == "PLAYLIST":
                title = title or spell_out(directive[2])
            else:
                fields[directive[1].upper()] = spell_out(directive[2])
    _add_list(rows, lines.source, title, "", songs)


def read_pls(lines: TextLines, rows: Gatherer) -> None:
    """Read PLS, in the order of the entries' numbers; a title without a file is ignored."""
    files: dict[int, str] = {}
    titles: dict[int, str] = {}
    name = ""
    for line in lines:
        text = line.rstrip("\r\n").lstrip()
        if entry := _ENTRY.match(text):
            (files if entry[1].lower() == "file" else titles)[int(entry[2])] = entry[3]
        elif heading := _GNOME_TITLE.match(text):
            name = spell_out(heading[1])
    folder = _folder(lines.source)
    songs = [
        _parse_names(titles.get(number, ""), resolve_place(files[number], folder))
        for number in sorted(files)
        if files[number].strip()
    ]
    _add_list(rows, lines.source, name, "", songs)


def read_xspf(data: RawBytes, rows: Gatherer) -> None:
    """Read XSPF of any version; refuse files that are cut off, or declare a document type or entities."""
    reader = _Xspf(data)
    try:
        for chunk in data:
            reader.parser.Parse(chunk, False)
            data.line = reader.parser.CurrentLineNumber
        reader.parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:  # ValueError: an unsupported encoding
        data.line = getattr(error, "lineno", reader.parser.CurrentLineNumber)
        reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else str(error)
        raise data.fault(f"is not XML ({reason}), or the file is cut off. Export it again.") from error
    except LookupError as error:
        raise data.fault("declares an unknown encoding. Save it as UTF-8.") from error
    _add_list(rows, data.source, reader.title, "", reader.songs)


class _Xspf:
    """XML parser handlers that store only finished tracks."""

    def __init__(self, data: RawBytes) -> None:
        self.title = ""
        self.songs: list[NamedSong] = []
        self._data, self._folder = data, _folder(data.source)
        self._open: list[str] = []
        self._track: dict[str, list[str]] = {}
        self._text: list[str] = []
        self._length = 0
        self.parser = parser = expat.ParserCreate(data.source.encoding)
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._add_text

    def _fault(self, reason: str) -> LibraryError:
        self._data.line = self.parser.CurrentLineNumber
        return self._data.fault(reason)

    def _refuse(self, *_: object) -> None:
        raise self._fault("declares a document type or entities, unlike playlists: it may be harmful and is not read.")

    def _start(self, tag: str, _: dict[str, str]) -> None:
        name = tag.rpartition(":")[2].lower()
        if not self._open and name != "playlist":
            raise self._fault("does not begin with <playlist>: this is not an XSPF playlist.")
        if len(self._open) >= _DEEPEST:
            raise self._fault("is nested too deeply for a playlist.")
        self._open.append(name)
        self._text, self._length = [], 0

    def _add_text(self, text: str) -> None:
        self._length += len(text)
        if self._length > LONGEST:
            raise self._fault(f"contains text longer than {LONGEST} characters: this is not a playlist.")
        self._text.append(text)

    def _end(self, _: str) -> None:
        name, text = self._open.pop(), "".join(self._text)
        self._text, self._length = [], 0
        if self._open == ["playlist"] and name == "title":
            self.title = text
        elif self._open == ["playlist", "tracklist", "track"] and name in _TRACK_FIELDS:
            self._track.setdefault(name, []).append(text)
        elif self._open == ["playlist", "tracklist"] and name == "track":
            self.songs.append(_song(self._track, self._folder))
            self._track = {}


def _song(track: dict[str, list[str]], folder: Path | None) -> NamedSong:
    """Return the song of an XSPF or JSPF track; a location that is a file is preferred to an address."""
    place = min(map(from_address, track.get("location", ())), key=is_web, default="")
    artist, title, album = (plain_name(" ".join(track.get(name, ())[:1])) for name in ("creator", "title", "album"))
    ids = map(_RECORDING.search, track.get("identifier", ()))
    mbid = next((match[1].lower() for match in ids if match), "")
    return NamedSong(artist, title, album, mbid, resolve_place(place, folder))


def read_jspf(document: JsonStream, rows: Gatherer) -> None:
    """Read JSPF; `location` and `identifier` may be a string or a list of strings."""
    folder, songs = _folder(document.source), []
    for track in records(document, "playlist", "track", "tracks"):
        fields = {name: [track.text(name)] for name in ("title", "creator", "album")}
        fields |= {name: track.texts(name) for name in ("location", "identifier")}
        songs.append(_song(fields, folder))
    _add_list(rows, document.source, document.title, "", songs)


def read_spotify_playlists(document: JsonStream, rows: Gatherer) -> None:
    """Read a Spotify account's playlists, except episodes; keeps up to 64 million characters in memory."""
    document.longest = _MAX_LIST
    for entry in records(document, "playlists"):
        items = entry.fields.get("items") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise document.fault("has items that are not a list of records.")
        songs = [_spotify_song(Record(document, item)) for item in items]
        for _ in range(songs.count(None)):
            rows.skip("episode or audiobook", document.place)
        _add_list(rows, document.source, entry.text("name"), "", [song for song in songs if song is not None])


def _spotify_song(item: Record) -> NamedSong | None:
    track, local = item.object("track"), item.object("localTrack")
    if track.fields or "track" not in item.fields:
        return (track if track.fields else item).song("artistName", "trackName", "albumName")
    # spotify:local:artist:album:title:seconds, percent-encoded
    parts = local.text("uri").split(":")
    if len(parts) >= 5 and parts[:2] == ["spotify", "local"]:
        artist, album, title = (plain_name(unquote_plus(part)) for part in parts[2:5])
        return NamedSong(artist, title, album)
    return None if item.fields.get("episode") or item.fields.get("audiobook") else NamedSong("", "")


def read_aotm(entries: Entries, rows: Gatherer) -> None:
    """Read AotM-2011; the number of each playlist becomes its name."""
    for entry in records(entries):
        items = entry.fields.get("playlist")
        if not isinstance(items, list):
            raise entries.fault("does not have a list under playlist: this is not an AotM-2011 mix.")
        songs = [_aotm_song(entries, item) for item in items]
        name = f"AotM {str(entry.fields.get('mix_id', ''))[:40]}"
        _add_list(rows, entries.source, name, entry.text("category"), songs)


def _aotm_song(entries: Entries, item: Any) -> NamedSong:
    """Return a song given as [[artist, title], ids], as [artist, title] or as an object."""
    if isinstance(item, dict):
        return Record(entries, item).song("artist", "title")
    names = item[0] if isinstance(item, list) and item and isinstance(item[0], list) else item
    if not isinstance(names, list) or len(names) < 2 or not all(isinstance(n, str) for n in names[:2]):
        raise entries.fault(f"contains {str(item)[:40]!r} instead of artist and title.")
    return NamedSong(plain_name(names[0]), plain_name(names[1]))
