"""The options of a search over HTTP: a client can draw its form from them."""

from collections import Counter

import pytest

from musicsim.audio import DESCRIPTORS
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.snapshot.filtering import filter_choices
from musicsim.explorer.snapshot.snapshot import take_snapshot


def describe(client) -> dict[str, dict]:
    return {option["name"]: option for option in client.get("/api/options").json()}


def choose(option: dict, songs: list[int]) -> object:
    """Return a value other than the default, as a form would send it."""
    return {
        "names": lambda: option["choices"][:2],
        "songs": lambda: songs,
        "range": lambda: list(option["bounds"] or (option["min"], 3)),
        "choice": lambda: option["choices"][-1],
        "switch": lambda: True,
        "text": lambda: "slow",
        "number": lambda: int(option["min"]),
    }[option["kind"]]()


def test_every_option_of_a_search_is_listed_once(client):
    listed = client.get("/api/options").json()
    assert [option["name"] for option in listed] == [option.name for option in options_of(SearchRequest).values()]
    for said, option in zip(listed, options_of(SearchRequest).values(), strict=True):
        assert (said["label"], said["help"], said["default"]) == (option.label, option.help, option.default_given)
        assert said["min"] == option.min
        assert said["max"] == (option.max if option.max_asked is None else option.max_asked)
        assert said["is_filter"] == (option.field in options_of(Filters))
    kinds = Counter(option["kind"] for option in listed)
    n_ranges = 3 + len(DESCRIPTORS)  # years, lengths, parts of the song, and each descriptor
    assert kinds == {"names": 9, "range": n_ranges, "songs": 4, "number": 2, "choice": 1, "switch": 1, "text": 1}


def test_choices_are_those_of_the_page(client, tiny_library):
    tiny_library.edits.edit([1, 2], {"year": 1980, "genre": "jazz"})
    tiny_library.edits.edit([3], {"year": 1999})
    listed, expected = describe(client), filter_choices(take_snapshot(tiny_library))
    assert expected.names["genres"]
    for option in options_of(Filters).values():
        said = listed[option.name]
        assert said["choices"] == expected.names.get(option.field, [])
        assert said["n_choices"] == len(said["choices"])
        assert said["bounds"] == (list(expected.ranges[option.field]) if option.field in expected.ranges else None)
    assert listed["years"]["bounds"][1] == 1999
    assert listed["by"]["choices"] == ["", "timbre", "rhythm", "harmony"]


@pytest.mark.parametrize("name", [option.name for option in options_of(SearchRequest).values()])
def test_request_built_from_options_is_accepted(client, tiny_library, name):
    for n, song in enumerate(tiny_library.songs()):
        tiny_library.edits.edit([song.id], {"year": 1980 + n})
    option = describe(client)[name]
    song, *others = (song.id for song in tiny_library.songs())
    value = choose(option, others[:2])
    assert value != option["default"]
    answer = client.post("/api/queue", json={"song": song, "search": {name: value}})
    assert answer.status_code == 200, answer.text
    assert client.get(f"/api/songs/{song}/similar", params={name: value}).status_code == 200


def test_many_choices_are_searched_by_typing(client, tiny_library, monkeypatch):
    monkeypatch.setattr("musicsim.explorer.search.form.FEW", 2)
    option = describe(client)["artist"]
    assert (option["choices"], option["n_choices"]) == (None, 3)
    assert client.get("/api/options/artist?text=noi").json() == ["Artist noise"]
    assert client.get("/api/options/artist").json() == ["Artist clicks", "Artist noise", "Artist tones"]
    assert client.get("/api/options/artist?text=qqq").json() == []
    for name in ("artists", "k", "years", "like"):
        assert client.get(f"/api/options/{name}").status_code == 404


def test_visitors_get_no_folders(client, tiny_library, monkeypatch):
    assert describe(client)["folder"]["choices"]
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    option = describe(client)["folder"]
    assert (option["choices"], option["n_choices"]) == ([], 0)
    assert client.get("/api/options/folder").json() == []
