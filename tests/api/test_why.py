"""*Why?* over HTTP: the parts, passages and facts that the dialog shows."""

import pytest

from musicsim.api import why
from musicsim.errors import NotFoundError
from musicsim.explorer.search.query import Examples, similarities_of, similarity_of
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.map_columns import PALETTE
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.hooks import ListFacts
from musicsim.public import visitor_may


@pytest.mark.parametrize("model", ["Sound", "Codewords"])
def test_explanation_is_that_of_the_explorer(client, tiny_library, model):
    answer = client.get("/api/songs/1/why", params={"other": 2, "model": model}).json()
    _, _, expected = explain_result(snapshot_under(tiny_library, model), 1, 2)
    parts = [(part["words"], part["share"]) for part in answer["parts"]]
    assert parts[: len(expected.parts)] == [
        (part.words, round(part.stages[-1].similarity, 4)) for part in expected.parts
    ]
    assert sum(part["share"] for part in answer["parts"]) == pytest.approx(answer["similarity"], abs=2e-3)
    listed = client.get("/api/songs/1/similar", params={"k": 11, "per_artist": 0, "model": model}).json()
    assert answer["similarity"] == next(song["similarity"] for song in listed if song["id"] == 2)
    assert answer["shared_sounds"] == list(expected.shared)
    assert [song["id"] for song in answer["songs"]] == [1, 2]
    for song, passages, heard_s in zip(answer["songs"], expected.passages, expected.heard_s, strict=True):
        assert [passage["sound"] for passage in song["passages"]] == list(range(len(expected.shared)))
        assert song["passages"] == [
            {"start_s": round(p.start_s, 2), "end_s": round(p.end_s, 2), "sound": p.slot} for p in passages
        ]
        assert song["heard_s"] == pytest.approx(heard_s, abs=0.01)
    assert answer["similarity_before"] is None
    assert answer["tags"] == list(expected.tags)


def test_waves_and_listeners_are_those_of_the_songs(client, tiny_library):
    answer = client.get("/api/songs/1/why?other=2").json()
    snapshot = snapshot_under(tiny_library, None)
    one, other, expected = explain_result(snapshot, 1, 2)
    assert answer["sound_colors"] == list(PALETTE[: len(expected.shared)])
    assert answer["uses_regions"] is False
    for song, side in zip(answer["songs"], (one, other), strict=True):
        assert song["peaks"] == pytest.approx(side.peaks, abs=5e-4)
        assert (song["title"], song["by"]) == (side.title, side.sub)
        assert song["starts_s"] == 0
        assert song["n_listeners"] == len(side.listeners)


def test_difference_names_the_song_with_more_of_a_sound(client, tiny_library):
    answer = client.get("/api/songs/1/why", params={"other": 2, "model": "Codewords"}).json()
    _, _, expected = explain_result(snapshot_under(tiny_library, "Codewords"), 1, 2)
    places = [share.more_in for share in expected.apart]
    assert places
    assert [one["more_in_place"] for one in answer["differences"]] == places
    assert [one["more_in"] for one in answer["differences"]] == [(1, 2)[place] for place in places]


def test_note_names_the_song_without_audio_features(client, tiny_library):
    tiny_library.frame_files.path(tiny_library.song(2).content_hash).unlink()
    answer = client.get("/api/songs/1/why?other=2").json()
    assert "were not stored" in answer["notes"][0]
    assert tiny_library.song(2).title in answer["notes"][0]
    assert answer["songs"][1]["heard_s"] == 0


def test_single_example_is_not_compared_with_others(client):
    assert client.get("/api/songs/1/why?other=2").json()["examples"] is None
    assert client.get("/api/songs/1/why?other=2&like=1").json()["examples"] is None


def test_nearest_of_several_examples_is_explained(client, tiny_library):
    snapshot = snapshot_under(tiny_library, None)
    query = Examples((1, 3, 4), (5,))
    to_like, to_unlike = similarities_of(snapshot, query, 2)
    answer = client.get("/api/songs/1/why?other=2&like=3&like=4&unlike=5").json()
    examples = answer["examples"]
    assert examples["similarity"] == pytest.approx(similarity_of(snapshot, query, 2), abs=1e-4)
    assert [one["id"] for one in examples["like"]] == [1, 3, 4]
    assert [one["similarity"] for one in examples["like"]] == pytest.approx(to_like, abs=1e-4)
    assert [one["title"] for one in examples["unlike"]] == [tiny_library.song(5).title]
    assert [one["similarity"] for one in examples["unlike"]] == pytest.approx(to_unlike, abs=1e-4)
    nearest = max(range(3), key=to_like.__getitem__)
    assert examples["explained"] == nearest
    assert [song["id"] for song in answer["songs"]] == [(1, 3, 4)[nearest], 2]


@pytest.mark.parametrize("place", [0, 1])
def test_chosen_example_is_explained(client, place):
    answer = client.get("/api/songs/1/why", params={"other": 2, "like": 3, "example": place}).json()
    alone = client.get(f"/api/songs/{(1, 3)[place]}/why?other=2").json()
    assert answer["examples"]["explained"] == place
    assert {name: value for name, value in answer.items() if name != "examples"} == {
        name: value for name, value in alone.items() if name != "examples"
    }


def test_part_of_a_song_is_explained(client, tiny_library):
    answer = client.get("/api/songs/1/why?other=2&part=1&part=3").json()
    part, other = answer["songs"]
    assert part["title"] == f"{tiny_library.song(1).title}, 1 to 3 s"
    assert (part["id"], part["starts_s"], other["starts_s"]) == (1, 1, 0)
    assert part["duration_s"] == pytest.approx(2, abs=0.05)


def test_extensions_add_facts(client, monkeypatch):
    """An extension that cannot find its facts does not hide the explanation."""

    def fail(snapshot, query, other_id):
        raise NotFoundError("nothing is known")

    @visitor_may
    def name_pair(snapshot, query, other_id):
        return {"Pair": [f"{query} and {other_id}", snapshot.library.name]}

    def owners_secret(snapshot, query, other_id):
        return {"Secret": ["42"]}

    monkeypatch.setattr(why, "load_hooks", {ListFacts: [fail, name_pair, owners_secret]}.__getitem__)
    pair, secret = {"title": "Pair", "lines": ["1 and 2", "library"]}, {"title": "Secret", "lines": ["42"]}
    assert client.get("/api/songs/1/why?other=2").json()["more"] == [pair, secret]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert client.get("/api/songs/1/why?other=2").json()["more"] == [pair]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("1/why?other=999", 404),
        ("999/why?other=1", 404),
        ("1/why?other=" + "9" * 30, 404),
        ("1/why?other=x", 422),
        ("1/why", 422),
        ("1/why?other=2&like=999", 404),
        ("1/why?other=2&like=3&example=2", 422),
        ("1/why?other=2&like=3&unlike=3", 422),
        ("1/why?other=2&part=3", 422),
        ("1/why?other=1", 200),
    ],
)
def test_unknown_song_is_named(client, path, status):
    answer = client.get(f"/api/songs/{path}")
    assert answer.status_code == status
    if status == 404:
        assert "does not exist" in answer.json()["error"]


def test_visitors_learn_no_paths(client, tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    answer = client.get("/api/songs/1/why?other=2")
    assert answer.status_code == 200
    assert str(tiny_library.folder.parent) not in answer.text
    assert tiny_library.song(1).folder not in answer.text
