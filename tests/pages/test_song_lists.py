"""Lists, buttons and search boxes of pages: their data for the browser, and the choices that come back."""

from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.search.matches import FEW, TextMatch
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.ui.base.keys import Key
from musicsim.ui.components import song_finder, song_list
from tests.pages.actions import open_page, play_buttons, press, sent


@pytest.fixture
def mounted(monkeypatch):
    """The components that were mounted: their data and callbacks, and what the browser sends."""
    seen = SimpleNamespace(data={}, callbacks={}, sent=None)

    def mount(_script, **_options):
        def take(*, data, **others):
            seen.data = data
            seen.callbacks = {name: call for name, call in others.items() if name.startswith("on_")}

        return take

    for module in (song_finder, song_list):
        monkeypatch.setattr(module, "component", mount)
        monkeypatch.setattr(module, "read_event", lambda *_: seen.sent)
    return seen


def answer(mounted, event: str, value: object) -> None:
    mounted.sent = value
    mounted.callbacks[f"on_{event}_change"]()


def test_playlist_is_played_and_queued_without_a_run_of_the_page(full):
    app = press(open_page("playlist"), "playlist_draw")
    ids = list(app.session_state["playlist"].song_ids)
    buttons = play_buttons(app)
    for label, act in (("Play through", "play"), ("Add to queue", "enqueue")):
        assert [buttons[label][name] for name in ("act", "songs", "library")] == [act, ids, full.name]
    (rows,) = sent(app, "songs/component")
    assert [row["song_id"] for row in rows["rows"]] == ids


def test_disabled_button_says_why(full):
    def script() -> None:
        from musicsim.ui.base.openers import active_library
        from musicsim.ui.components.play_button import show_play_button

        show_play_button("Play", key="a", library=active_library(), disabled_because="There are no songs.")
        show_play_button("", key="b", library=active_library(), song_ids=[3, 5], start=1, help="Play “A”")

    off, on = sent(AppTest.from_function(script).run(), "songs/play_button")
    assert (off["disabled"], off["help"]) == (True, "There are no songs.")
    assert (on["disabled"], on["help"], on["songs"], on["start"]) == (False, "Play “A”", [3, 5], 1)


def test_only_valid_actions_reach_the_page(full, mounted):
    taken = []
    rows = [song_list.row_of(song) for song in full.songs()[:3]]
    song_list.show_song_list(full, rows, key="list", on_action=taken.append, first=4, plays=[9, 8])
    assert (mounted.data["library"], mounted.data["first"], mounted.data["plays"]) == (full.name, 4, [9, 8])
    valid = {"kind": "move", "index": 1, "to": 2, "song_id": 7}
    for changes in ({"kind": "play"}, {"index": 3}, {"to": -2}, {"song_id": "7"}, {"index": None}):
        answer(mounted, "action", valid | changes)
    assert taken == []
    answer(mounted, "action", valid)
    assert taken == [song_list.Action("move", 1, 7, 2)]


def test_chosen_songs_are_added_and_dropped(full, mounted):
    first, second, third = (song.id for song in full.songs()[:3])
    changes = []
    song_finder.find_songs(
        take_snapshot(full), "Songs", key="songs", chosen=[first, second], on_change=changes.append, most=2
    )
    assert (mounted.data["kinds"], mounted.data["library"]) == (["song"], full.name)
    assert [match["value"] for match in mounted.data["chosen"]] == [str(first), str(second)]
    for value in (999, "x", "9" * 5000, "²"):
        answer(mounted, "picked", {"kind": "song", "value": value})
    answer(mounted, "picked", {"kind": "name", "value": "²"})
    assert changes == []
    answer(mounted, "picked", {"kind": "song", "value": str(third)})
    answer(mounted, "picked", {"kind": "song", "value": str(first)})
    answer(mounted, "dropped", str(first))
    assert changes == [[second, third], [second, first], [second]]


def test_box_offers_only_its_kinds(full, mounted):
    picked = []
    song_finder.find_song(
        full, "Title", key="title", kinds=("song", "album"), on_pick=lambda *match: picked.append(match)
    )
    for kind in ("artist", "words", "unknown", "album"):
        answer(mounted, "picked", {"kind": kind, "value": "A\nB"})
    assert picked == [("album", "A\nB")]


def test_only_listed_entries_are_picked(mounted):
    picked = []
    song_finder.find_entry("Playlist", [TextMatch("name", "7", "Mine")], key="lists", on_pick=picked.append)
    assert mounted.data["entries"] == [{"kind": "name", "value": "7", "title": "Mine", "sub": ""}]
    for value in ("8", "7"):
        answer(mounted, "picked", {"kind": "name", "value": value})
    assert picked == ["7"]


@pytest.mark.parametrize("field", ["", "no_artists"])
def test_many_names_are_searched_in_the_browser_or_on_the_server(full, mounted, field):
    key: Key[list[str]] = Key(f"test_names_{field}", list, "chosen names")
    names = [f"Artist {n}" for n in range(FEW + 1)]
    song_finder.find_names("Artists", names, key=key, help="", field=field)
    if field:
        assert (mounted.data["option"], mounted.data["library"]) == ("no_artist", full.name)
        assert "entries" not in mounted.data
    else:
        assert sorted(entry["value"] for entry in mounted.data["entries"]) == sorted(names)
    for value in ("Artist 5", "nobody"):
        answer(mounted, "picked", {"kind": "name", "value": value})
    assert key.get() == ["Artist 5"]
    assert st.session_state[key.name] == ["Artist 5"]
