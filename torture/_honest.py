"""Small files of every importable format, as ordinary programs write them."""

import json
import sqlite3
from pathlib import Path

import numpy as np

from tests.shared import SHARED

__all__ = ["honest_lists"]

_SONGS = [(f"Artist {n % 15}", f"Song {n % 15} {n % 2}") for n in range(40)]


def _csv(head: str, *columns: str) -> str:
    lines = (",".join(columns).format(artist=a, title=t, n=n + 1) for n, (a, t) in enumerate(_SONGS))
    return "\n".join([head, *lines]) + "\n" if head else "\n".join(lines) + "\n"


def _listen(n: int, artist: str, title: str) -> dict[str, object]:
    return {"listened_at": 1_600_000_000 + n, "track_metadata": {"artist_name": artist, "track_name": title}}


def _texts() -> dict[str, str]:
    numbered = list(enumerate(_SONGS))
    spotify = [
        {"ts": f"2021-01-{1 + n % 28:02d}T10:00:00Z", "ms_played": 200_000, "master_metadata_track_name": t,
         "master_metadata_album_artist_name": a, "master_metadata_album_album_name": "Album"} for n, (a, t) in numbered
    ]  # fmt: skip
    maloja = [{"time": 1_600_000_000 + n, "track": {"artists": [a], "title": t}} for n, (a, t) in numbered]
    pano = [{"artist": a, "track": t, "timeMs": 1_600_000_000_000 + n, "event": "scrobble"} for n, (a, t) in numbered]
    tracks = "".join(
        f"<track><location>file:///m/{n}.mp3</location><creator>{a}</creator><title>{t}</title></track>"
        for n, (a, t) in numbered
    )
    xspf = (
        f'<?xml version="1.0"?><playlist version="1" xmlns="http://xspf.org/ns/0/"><title>x</title><trackList>{tracks}'
    )
    loved = [{"artist": {"name": a}, "name": t, "date": {"uts": "1600000000"}} for a, t in _SONGS]
    items = [{"track": {"trackName": t, "artistName": a, "albumName": "x"}} for a, t in _SONGS]
    pls = "".join(f"File{n + 1}=/m/{n}.mp3\nTitle{n + 1}={a} - {t}\n" for n, (a, t) in numbered)
    return {
        "plays.csv": _csv("listener,artist,title,plays", "ann", "{artist}", "{title}", "{n}"),
        "tags.csv": _csv("artist,title,tag,weight", "{artist}", "{title}", "calm", "{n}"),
        "playlists.csv": _csv("playlist,artist,title", "mine", "{artist}", "{title}"),
        "lastfm.csv": _csv("", "{artist}", "Album", "{title}", "01 Jan 2020 10:00"),
        "spotify.json": json.dumps(spotify),
        "listenbrainz.jsonl": "\n".join(json.dumps(_listen(n, a, t)) for n, (a, t) in numbered),
        "maloja.json": json.dumps({"scrobbles": maloja}),
        "panoscrobbler.jsonl": "\n".join(map(json.dumps, pano)),
        "loved.json": json.dumps({"lovedtracks": {"track": loved}}),
        "m3u.m3u8": "#EXTM3U\n" + "".join(f"#EXTINF:200,{a} - {t}\n/m/{n}.mp3\n" for n, (a, t) in numbered),
        "pls.pls": f"[playlist]\n{pls}NumberOfEntries=40\nVersion=2\n",
        "xspf.xspf": f"{xspf}</trackList></playlist>",
        "jspf.jspf": json.dumps({"playlist": {"title": "x", "track": [{"creator": a, "title": t} for a, t in _SONGS]}}),
        "spotify_playlists.json": json.dumps({"playlists": [{"name": "x", "items": items}]}),
        "aotm.json": json.dumps([{"mix_id": 1, "category": "Mixed", "playlist": [[list(s), "TR1"] for s in _SONGS]}]),
    }


def _beets(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE items (id INTEGER PRIMARY KEY, path BLOB, title TEXT, artist TEXT, album TEXT, genre TEXT, "
            "mb_trackid TEXT, length REAL)"
        )
        database.execute("CREATE TABLE item_attributes (id INTEGER PRIMARY KEY, entity_id INT, key TEXT, value TEXT)")
        for n, (artist, title) in enumerate(_SONGS):
            row = (n, f"/m/{n}.mp3".encode(), title, artist, "Album", "jazz", "", 200.0)
            database.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            database.execute("INSERT INTO item_attributes VALUES (?, ?, 'play_count', ?)", (n, n, str(n)))
    database.close()


def honest_lists(folder: Path) -> dict[str, bytes]:
    """Return the bytes of listening files by name: generated ones, and those of the shared data if it is available."""
    _beets(folder / "library.db")
    made = {name: text.encode() for name, text in _texts().items()}
    made["beets.db"] = (folder / "library.db").read_bytes()
    real = sorted((SHARED / "importers").glob("*/*.*")) + sorted((SHARED / "importers/lizzy").glob("*/*.*"))
    for path in real:
        if path.is_file() and path.stat().st_size < 200_000:
            made[f"{path.parent.name} {path.name}"] = path.read_bytes()
    return made


def honest_vectors(folder: Path, n: int = 30) -> dict[str, bytes]:
    """Return files of song vectors by name."""
    rng = np.random.default_rng(0)
    vectors, ids = rng.standard_normal((n, 8)).astype(np.float32), np.arange(1, n + 1)
    np.save(folder / "plain.npy", vectors)
    np.savez(folder / "ids.npz", vectors=vectors, ids=ids)
    import pandas as pd

    frame = pd.DataFrame(vectors, columns=[f"d{i}" for i in range(8)])
    frame.insert(0, "id", ids)
    names = ["plain.npy", "ids.npz"]
    try:
        frame.to_parquet(folder / "table.parquet")
        names.append("table.parquet")
    except ImportError:
        pass
    return {name: (folder / name).read_bytes() for name in names}
