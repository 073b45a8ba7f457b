"""Playlists that services and data sets keep as JSON.

=================  ===============================================================================
jspf               XSPF as JSON, as ListenBrainz exports it; also without the outer object
spotify_playlists  ``Playlist1.json`` of "Account data": every list of the account
aotm               AotM-2011, lists of Art of the Mix (McFee and Lanckriet, "Hypergraph models of playlist
                   dialects", ISMIR 2012): mix_id, category, and songs as [[artist, title], ids]
=================  ===============================================================================
"""

from typing import Any
from urllib.parse import unquote_plus

from musicsim.library.importing.json_formats import Entries, object_in, objects, plain, text_in
from musicsim.library.importing.playlist_files import keep_list, list_folder, song_of
from musicsim.library.importing.records import Gatherer, NamedSong
from musicsim.library.importing.sources import JsonStream

_MAX_LIST = 1 << 26  # characters: Spotify's longest lists, of 10 000 songs, have 4 million
_JSPF_TEXTS = {"title": "title", "creator": "creator", "album": "album"}


def read_jspf(document: JsonStream, rows: Gatherer) -> None:
    """JSPF; `location` and `identifier` may be one text or a list of them."""
    folder, songs = list_folder(document.source), []
    for track in objects(document, "playlist", "track", "tracks"):
        fields = {name: [text_in(document, track, name)] for name in _JSPF_TEXTS}
        fields |= {name: _texts(document, track, name) for name in ("location", "identifier")}
        songs.append(song_of(fields, folder))
    keep_list(rows, document.source, document.title, "", songs)


def _texts(document: Entries, track: dict[str, Any], name: str) -> list[str]:
    value = track.get(name)
    texts = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise document.fault(f"has {name} {str(value)[:40]!r}, which should be a list of texts.")
    return [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]


def read_spotify_playlists(document: JsonStream, rows: Gatherer) -> None:
    """Lists of a Spotify account; episodes are left out and counted.

    Memory: the longest list, at most 64 million characters of it.
    """
    document.longest = _MAX_LIST
    for entry in objects(document, "playlists"):
        items = entry.get("items") or []
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise document.fault("has items that are no list of records.")
        songs = []
        for item in items:
            song = _spotify_song(document, item)
            if song is None:
                rows.skip("episode or audiobook", document.place)
            else:
                songs.append(song)
        keep_list(rows, document.source, text_in(document, entry, "name"), "", songs)


def _spotify_song(document: Entries, item: dict[str, Any]) -> NamedSong | None:
    track, local = object_in(document, item, "track"), object_in(document, item, "localTrack")
    if track or "track" not in item:
        fields = track or item
        names = (text_in(document, fields, name) for name in ("artistName", "trackName", "albumName"))
        return NamedSong(*names)
    # spotify:local:artist:album:title:seconds, each part quoted
    parts = text_in(document, local, "uri").split(":")
    if len(parts) >= 5 and parts[:2] == ["spotify", "local"]:
        artist, album, title = (plain(unquote_plus(part)) for part in parts[2:5])
        return NamedSong(artist, title, album)
    return None if item.get("episode") or item.get("audiobook") else NamedSong("", "")


def read_aotm(entries: Entries, rows: Gatherer) -> None:
    """AotM-2011: lists are called by their number, their category is kept."""
    for entry in objects(entries):
        if not isinstance(entry.get("playlist"), list):
            raise entries.fault("has no list under playlist: this is not an AotM-2011 mix.")
        songs = [_aotm_song(entries, item) for item in entry["playlist"]]
        category = text_in(entries, entry, "category")
        keep_list(rows, entries.source, f"AotM {str(entry.get('mix_id', ''))[:40]}", category, songs)


def _aotm_song(entries: Entries, item: Any) -> NamedSong:
    """A song as [[artist, title], ids], [artist, title] or an object of both."""
    if isinstance(item, dict):
        return NamedSong(text_in(entries, item, "artist"), text_in(entries, item, "title"))
    names = item[0] if isinstance(item, list) and item and isinstance(item[0], list) else item
    if not isinstance(names, list) or len(names) < 2 or not all(isinstance(n, str) for n in names[:2]):
        raise entries.fault(f"holds {str(item)[:40]!r} where artist and title should be.")
    return NamedSong(plain(names[0]), plain(names[1]))
