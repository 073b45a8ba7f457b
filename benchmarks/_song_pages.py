"""A music server on the loopback that lists some songs by pages, and nothing else."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from musicsim.library import Song

_PAGE = 500


def _answer(values: dict[str, Any]) -> bytes:
    return json.dumps({"subsonic-response": {"status": "ok", "version": "1.16.1", **values}}).encode()


def _entry(song: Song) -> dict[str, Any]:
    names = {"title": song.title, "artist": song.artist, "album": song.album, "duration": song.duration_s}
    return {"id": f"so-{song.id}", "path": "/".join(song.path.parts[-3:]), "playCount": song.id % 7, **names}


@contextmanager
def serving(songs: Sequence[Song]) -> Iterator[str]:
    """Serve these songs; gives the address."""
    starts = range(0, len(songs), _PAGE)
    pages = [_answer({"searchResult3": {"song": [_entry(s) for s in songs[i : i + _PAGE]]}}) for i in starts]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            data = _answer({"indexes": {"lastModified": 1}} if "getIndexes" in parts.path else {})
            page = int(parse_qs(parts.query).get("songOffset", ["0"])[0]) // _PAGE
            if "search3" in parts.path and page < len(pages):
                data = pages[page]
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
