"""Tests of the commands and the HTTP requests about albums."""

import json

from tests.command import run


def ask(*arguments, library):
    return json.loads(run("albums", *arguments, "--json", library=library.folder)[0])


def test_albums_are_listed_shown_and_compared(halves):
    albums = ask("list", "--sort", "artist", library=halves)
    assert [album["artist"] for album in albums] == sorted(2 * ["Artist clicks", "Artist noise", "Artist tones"])
    tones, other = ask("list", "--search", "TONES artist", library=halves)
    assert (tones["name"], other["name"]) == ("Tones A", "Tones B")
    shown = ask("show", tones["id"], library=halves)
    assert [one["song"]["track"] for one in shown["songs"]] == [1, 2]
    assert {one["work"] for one in shown["songs"]} == {None}
    similar = ask("similar", "tones a", "-k", 2, library=halves)
    assert similar[0]["name"] == "Tones B"
    assert len(similar) == 2
    table, _ = run("albums", "similar", tones["id"], library=halves.folder)
    assert "Tones B" in table
    _, error = run("albums", "similar", "nothing", library=halves.folder, expect=1)
    assert "no album 'nothing'" in error


def test_nothing_found_is_an_error(halves):
    out, error = run("albums", "list", "--search", "xyzzy", "--json", library=halves.folder, expect=1)
    assert (json.loads(out), "no album matches 'xyzzy'" in error) == ([], True)
    _, error = run("albums", "movements", "--genre", "Nothing", library=halves.folder, expect=1)
    assert "without --genre there are 12." in error


def test_works_are_shown_with_their_album(halves):
    ids = sorted(song.id for song in halves.songs() if song.album == "Tones A")
    for song_id, number in zip(ids, ("I", "II"), strict=True):
        halves.edits.edit([song_id], {"title": f"Sonata: {number}. Song"})
    assert [one["work"] for one in ask("show", "tones a", library=halves)["songs"]] == ["Sonata", "Sonata"]


def test_playlist_plays_whole_albums_in_track_order(halves, tmp_path):
    target = tmp_path / "walk.m3u8"
    made = ask("playlist", "clicks b", "--albums", 3, "--per-artist", 0, "-o", target, library=halves)
    assert [album["name"] for album in made["albums"][:2]] == ["Clicks B", "Clicks A"]
    names = [song["album"] for song in made["songs"]]
    assert names == [album["name"] for album in made["albums"] for _ in range(2)]
    tracks = [song["track"] for song in made["songs"]]
    assert all(tracks[i] < tracks[i + 1] for i in (0, 2, 4))
    lines = [line for line in target.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == [song["path"] for song in made["songs"]]
    table, _ = run("albums", "playlist", "clicks b", library=halves.folder)
    assert "6 songs" in table
    _, error = run("albums", "playlist", "clicks b", "-o", tmp_path / "x.doc", library=halves.folder, expect=1)
    assert "use a file name that ends in" in error


def test_movements_prints_each_note_on_its_own_line(halves):
    out, _ = run("albums", "movements", "-n", 2, "--save", "Night", library=halves.folder)
    assert [line.strip() for line in out.splitlines()][-1] == "Saved as “Night”."


def test_http_answers_are_those_of_the_commands(client, halves):
    albums = client.get("/api/albums?sort=name").json()
    assert albums == ask("list", library=halves)
    first = albums[0]["id"]
    similar = client.get(f"/api/albums/{first}/similar?k=3").json()
    assert similar == ask("similar", first, "-k", 3, library=halves)
    steps = client.get(f"/api/albums/{first}/playlist?length=2").json()
    made = ask("playlist", first, "--albums", 2, library=halves)
    assert [song["id"] for step in steps for song in step["songs"]] == [song["id"] for song in made["songs"]]
    assert client.get("/api/albums/999999/similar").status_code == 404
    assert client.get(f"/api/albums/{first}/similar?k=0").status_code == 422
    assert client.get("/api/albums?sort=color").status_code == 422


def test_visitors_see_no_albums(client, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert client.get("/api/albums").status_code in (403, 404)
