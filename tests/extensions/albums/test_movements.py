"""Tests of movements that are kept together in playlists."""

import json
import random

import pytest

from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.albums.movements import keep_together
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from tests.command import run


@pytest.fixture
def others(tiny_library, works):
    """The ids of the songs that are not movements."""
    return [song.id for song in tiny_library.songs() if not any(song.id in work for work in works)]


def replace_first_movements(song_ids, works):
    """Change a list in steps that each follow the definition."""
    parts = [[i] for i in song_ids]
    for work in works:
        places = [place for place, part in enumerate(parts) if part[0] in work]
        for place in places:
            parts[place] = list(work) if place == places[0] else [None]
        parts = [part for part in parts if part != [None]]
    return tuple(i for part in parts for i in part)


def test_every_work_replaces_its_first_movement(tiny_library, works):
    snapshot, rng = take_snapshot(tiny_library), random.Random(0)
    known = [song.id for song in tiny_library.songs()]
    for _ in range(300):
        ids = rng.choices([*known, 999_999], k=rng.randint(0, 12))  # with repeats, and a song that is unknown
        whole, sentence = keep_together(snapshot, ids)
        assert whole == replace_first_movements(ids, works)
        assert sentence.startswith("Nothing changed") == (whole == tuple(ids))
        assert keep_together(snapshot, whole)[0] == whole


def test_sentence_names_works_and_counts_songs(tiny_library, works, others):
    (allegro, largo, presto), trio, suite = works
    snapshot = take_snapshot(tiny_library)

    def sentence(*ids):
        return keep_together(snapshot, ids)[1]

    assert sentence(others[0], largo) == "Together now: “Sonata”. 2 songs added."
    assert sentence(presto, largo, allegro) == "Together now: “Sonata”. 0 songs added."
    assert sentence(suite[1], *trio, largo) == "Together now: “Suite”, “Sonata”. 3 songs added."
    assert sentence(*trio, trio[0]) == "Together now: “Trio in A major”. 0 songs added."
    assert sentence(*others, *trio, *suite) == "Nothing changed: this playlist has no separate movements."


def test_work_on_two_albums_is_placed_once(tiny_library, works, others):
    """The second recording of two movements is on another album. Its songs count as duplicates."""
    pair, copies = works[0][:2], others[-2:]
    for i, number in zip(copies, ("I", "II"), strict=True):
        tiny_library.edits.edit([i], {"title": f"Sonata: {number}.", "album": "Best of"})
    tiny_library.duplicates.enter([SamePair(one, two, 1.0, 0.0) for one, two in zip(pair, copies, strict=True)], [])
    snapshot = take_snapshot(tiny_library)
    whole, _ = keep_together(snapshot, [copies[1], others[0], copies[0]])
    chosen = {snapshot.representative_of.get(i, i) for i in pair}
    assert chosen <= set(whole)
    assert len(whole) == len(set(whole)) == 4
    assert keep_together(snapshot, whole)[0] == whole


@pytest.fixture
def saved(tiny_library, works, others):
    """A saved playlist with two separate movements; return the ids of its songs."""
    ids = [others[0], works[0][1], others[1], works[0][0]]
    tiny_library.add_playlists([("Evening", None, ids)], source=OWN_PLAYLISTS)
    return ids


def ask(*arguments, library):
    return json.loads(run("albums", "movements", *arguments, "--json", library=library.folder)[0])


def test_command_changes_saved_and_generated_playlists(tiny_library, works, others, saved, tmp_path):
    target = tmp_path / "whole.m3u8"
    made = ask("--saved", "Evening", "--save", "Whole", "-o", target, library=tiny_library)
    expected = [others[0], *works[0], others[1]]
    assert [song["id"] for song in made["songs"]] == expected
    assert made["notes"] == ["Together now: “Sonata”. 1 song added.", "Saved as “Whole”."]
    lists = {playlist.name: list(playlist.song_ids) for playlist in tiny_library.playlists()}
    assert lists == {"Evening": saved, "Whole": expected}
    lines = [line for line in target.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == [song["path"] for song in made["songs"]]
    table, _ = run("albums", "movements", "--saved", "Whole", library=tiny_library.folder)
    assert "Nothing changed" in table
    generated = json.loads(run("playlist", "-n", 5, "--seed", 1, "--json", library=tiny_library.folder)[0])
    ids = [step["id"] for step in generated["songs"]]
    made = ask("-n", 5, "--seed", 1, library=tiny_library)
    assert tuple(song["id"] for song in made["songs"]) == replace_first_movements(ids, works)


def test_http_answer_is_that_of_the_command(client, tiny_library, saved):
    answer = client.get("/api/albums/movements", params={"song": saved}).json()
    made = ask("--saved", "Evening", library=tiny_library)
    assert [song["id"] for song in answer] == [song["id"] for song in made["songs"]]
    assert client.get("/api/albums/movements", params={"song": 2**70}).status_code == 422
