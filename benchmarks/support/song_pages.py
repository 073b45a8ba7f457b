"""A music server on the loopback that lists some songs and their albums by pages, and counts requests."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from musicsim.library import Song

_PAGE = 500
_SONGS_AN_ALBUM = 10


def _answer(values: dict[str, Any]) -> bytes:
    return json.dumps({"subsonic-response": {"status": "ok", "version": "1.16.1", **values}}).encode()


def _entry(song: Song, number: int) -> dict[str, Any]:
    names = {"title": song.title, "artist": song.artist, "album": song.album, "duration": song.duration_s}
    place = {"path": "/".join(song.path.parts[-3:]), "albumId": f"al-{number // _SONGS_AN_ALBUM}"}
    return {"id": f"so-{song.id}", "playCount": song.id % 7, **place, **names}


class SongServer:
    """The songs of the server, its address, and the number of requests so far."""

    def __init__(self, songs: Sequence[Song]) -> None:
        self.address, self.n_asked, self._modified = "", 0, 1_700_000_000_000
        self._show([_entry(song, number) for number, song in enumerate(songs)])

    def drop(self, n_songs: int) -> None:
        """Remove this many songs, each of another album."""
        gone = set(range(0, len(self._songs), max(_SONGS_AN_ALBUM, len(self._songs) // n_songs))[:n_songs])
        self._modified += 60_000
        self._show([entry for number, entry in enumerate(self._songs) if number not in gone])

    def _show(self, songs: list[dict[str, Any]]) -> None:
        self._songs = songs
        self._albums: dict[str, list[dict[str, Any]]] = {}
        for entry in songs:
            self._albums.setdefault(entry["albumId"], []).append(entry)
        listed = [{"id": i, "songCount": len(found)} for i, found in self._albums.items()]
        self._pages = {"search3": _pages("searchResult3", "song", songs)}
        self._pages["getAlbumList2"] = _pages("albumList2", "album", listed)

    def answer(self, call: str, values: dict[str, str]) -> bytes:
        """Return the response to a call."""
        self.n_asked += 1
        if call == "getIndexes":
            return _answer({"indexes": {"lastModified": self._modified}})
        if call == "getAlbum":
            return _answer({"album": {"song": self._albums.get(values["id"], [])}})
        page = int(values.get("songOffset", values.get("offset", "0"))) // _PAGE
        pages = [] if values.get("type") == "recent" else self._pages.get(call, [])
        return pages[page] if page < len(pages) else _answer({})


def _pages(name: str, of: str, entries: list[dict[str, Any]]) -> list[bytes]:
    return [_answer({name: {of: entries[i : i + _PAGE]}}) for i in range(0, len(entries), _PAGE)]


@contextmanager
def serving(songs: Sequence[Song]) -> Iterator[SongServer]:
    """Serve these songs."""
    there = SongServer(songs)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            call = parts.path.rpartition("/")[2].removesuffix(".view")
            data = there.answer(call, dict(parse_qsl(parts.query)))
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()
