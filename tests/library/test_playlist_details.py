"""Tests of the request that is stored with a saved playlist."""

import pytest

from musicsim.library import Library
from musicsim.library.stores.playlists import replace_playlists

DETAILS = {"seed": 7, "reasons": [["same artist", 0.25], None], "settings": {"freedom": 1.5}, "ünicode": "☂"}


def details_of(library):
    return {p.name: p.details for p in library.playlists()}


def test_playlists_are_stored_with_and_without_details(tiny_library):
    a, b = (s.id for s in tiny_library.songs()[:2])
    lists = [("plain", None, [a]), ("drawn", None, [a, b], DETAILS), ("bare", "calm", [b], None)]
    assert tiny_library.add_playlists(iter(lists), source="saved") == 3
    with Library.open(tiny_library.folder) as again:
        assert details_of(again) == {"plain": None, "drawn": DETAILS, "bare": None}
        drawn = again.playlists()[1]
        assert (drawn.song_ids, drawn.source, drawn.category) == ((a, b), "saved", None)
        assert drawn.created_at > 1e9
        assert {drawn: 1}[drawn] == 1, "lists can be told apart by hash"


def test_details_belong_to_source_name_and_category(tiny_library):
    a = tiny_library.songs()[0].id
    tiny_library.add_playlists([("mine", None, [a], {"n": 1}), ("mine", "calm", [a], {"n": 2})], source="x")
    tiny_library.add_playlists([("mine", None, [a], {"n": 3})], source="y")
    found = {(p.source, p.category): p.details for p in tiny_library.playlists()}
    assert found == {("x", None): {"n": 1}, ("x", "calm"): {"n": 2}, ("y", None): {"n": 3}}


def test_replaced_playlist_loses_details(tiny_library):
    a = tiny_library.songs()[0].id
    tiny_library.add_playlists([("mine", None, [a], DETAILS)], source="saved")
    tiny_library.add_playlists([("mine", None, [a])], source="saved")
    assert details_of(tiny_library) == {"mine": None}


def test_all_playlists_of_a_source_are_replaced_at_once(tiny_library):
    a, b = (s.id for s in tiny_library.songs()[:2])
    tiny_library.add_playlists([("old", None, [a]), ("kept", None, [a])], source="x")
    tiny_library.add_playlists([("other", None, [a])], source="y")
    with tiny_library.write() as connection:
        replace_playlists(connection, [("kept", None, [b]), ("new", None, [a])], source="x")
    found = {(p.source, p.name): p.song_ids for p in tiny_library.playlists()}
    assert found == {("y", "other"): (a,), ("x", "kept"): (b,), ("x", "new"): (a,)}
    with pytest.raises(ValueError, match="details"), tiny_library.write() as connection:
        replace_playlists(connection, [("bad", None, [a], {"n": {1, 2}})], source="x")
    assert len(tiny_library.playlists(source="x")) == 2


def test_invalid_details_change_nothing(tiny_library):
    a = tiny_library.songs()[0].id
    with pytest.raises(ValueError, match="details"):
        tiny_library.add_playlists([("mine", None, [a]), ("drawn", None, [a], {"n": {1, 2}})], source="saved")
    assert tiny_library.playlists() == []
