"""The search box of Listen over HTTP: the same matches as in Python, and the songs of a match."""

from dataclasses import asdict

import pytest

from musicsim.explorer.search.matches import song_matches, trim_text
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.snapshot.words import suggest_words
from musicsim.library import Library

TEXTS = [
    "", "  ", "a", "song", "Song noise 1", "sogn nosie", "artist noise", "ARTIST  tnoes", "album", "noise", "slow",
    "very slow qqqq", "not lively", "1980s", "slow noise 1980-1985", "qqqqqq", "120 bpm", "a minor", "%", "_", "\\",
    "“song” ’", "ß", "\0", "x" * 300,
]  # fmt: skip


@pytest.fixture
def albums(tiny_library: Library) -> Library:
    """The tiny library with albums and years."""
    for n, song in enumerate(tiny_library.songs()):
        tiny_library.edits.edit([song.id], {"album": f"Album {n % 3}", "year": 1980 + n})
    return tiny_library


def test_matches_are_those_of_the_library(client, albums):
    snapshot = take_snapshot(albums)
    n_found = 0
    for text in TEXTS:
        answer = client.get("/api/find", params={"text": text}).json()
        typed = trim_text(text)
        found = song_matches(snapshot, typed) if typed else []
        assert answer["matches"] == [asdict(match) for match in found], text
        assert answer["suggestions"] == (suggest_words(snapshot) if typed and not found else []), text
        n_found += bool(found)
    assert n_found > 12


def test_finds_kinds_in_spite_of_typos(client, albums):
    def find(text, **more):
        return client.get("/api/find", params={"text": text, **more}).json()["matches"]

    assert {match["kind"] for match in find("noise")} == {"artist", "song", "words"}
    assert [match["value"] for match in find("artist niose", kind="artist")] == ["Artist noise"]
    assert {match["kind"] for match in find("album", kind=["album", "song"])} == {"album"}
    assert find("slow qqqq")[-1] == {
        "kind": "words", "value": "slow", "title": find("slow")[-1]["title"],
        "sub": "songs that match these words; not understood: qqqq",
    }  # fmt: skip
    nothing = client.get("/api/find?text=qqqqqq").json()
    assert nothing == {"matches": [], "suggestions": suggest_words(take_snapshot(albums))}


def test_songs_of_match_start_a_queue(client, albums):
    songs = albums.songs()
    expected = {
        "artist": [song.id for song in songs if song.artist == "Artist noise"],
        "album": [song.id for song in songs if song.album == "Album 0" and song.artist == "Artist noise"],
        "song": [songs[0].id],
        "words": [song.id for song in songs if 1980 <= song.year <= 1984],
    }
    texts = {"artist": "artist noise", "album": "album 0", "song": songs[0].title, "words": "1980-1984"}
    for kind, text in texts.items():
        matches = client.get("/api/find", params={"text": text, "kind": kind}).json()["matches"]
        answers = [client.get("/api/find/songs", params={k: m[k] for k in ("kind", "value")}).json() for m in matches]
        assert sorted(expected[kind]) in [sorted(answer["ids"]) for answer in answers], kind
        first, *others = answers[0]["ids"]
        assert answers[0]["n_songs"] == len(others) + 1
        body = {"song": first, "opening": others, "search": {"like": others}}
        assert client.post("/api/queue", json=body).status_code == 200
    few = client.get("/api/find/songs?kind=words&value=1980-1984&limit=2").json()
    assert (len(few["ids"]), few["n_songs"]) == (2, 5)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 422),
        ("kind=no&value=1", 422),
        ("kind=song&value=x", 422),
        ("kind=song&value=" + "9" * 5000, 422),
        ("kind=song&value=999", 200),
        ("kind=artist&value=nobody", 200),
        ("kind=album&value=%00%0Ax", 200),
        ("kind=words&value=about+qqqq&limit=0", 422),
    ],
)
def test_unknown_match_has_no_songs(client, query, status):
    answer = client.get(f"/api/find/songs?{query}")
    assert answer.status_code == status
    if status == 200:
        assert answer.json() == {"ids": [], "n_songs": 0}


def test_visitors_learn_no_folders(client, albums, monkeypatch):
    untagged = albums.songs()[0]
    albums.edits.edit([untagged.id], {"artist": ""})
    texts = [*TEXTS, *untagged.folder.strip("/").split("/")]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    for text in texts:
        answer = client.get("/api/find", params={"text": text})
        assert answer.status_code == 200
        assert untagged.folder not in answer.text
