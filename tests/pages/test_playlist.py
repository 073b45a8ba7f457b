"""The Playlist page without a browser: the form and its request, drawing, undoing, saving, opening, exporting."""

import re
import time
from itertools import pairwise

import numpy as np
import pytest
import soundfile
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.extensions.listenbrainz.client import keep_token
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.library.db import schema
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.components.song_list import Action
from musicsim.ui.playlist import view as playlist_view
from tests.extensions.mpd.real_mpd import real_mpd
from tests.extensions.music_servers.serving import scripted
from tests.sounds import write_song


@pytest.fixture
def requests(monkeypatch):
    """All requests that are drawn for, in order."""
    seen: list[PlaylistRequest] = []
    draw = Walk.draw

    def watched(walk, request, random_state=None):
        seen.append(request)
        return draw(walk, request, random_state)

    monkeypatch.setattr(Walk, "draw", watched)
    return seen


def open_page(**query: str) -> AppTest:
    app = AppTest.from_file(SHELL, default_timeout=60).run()
    app.switch_page(PAGES["playlist"])
    for folded in ("playlist_limits", "playlist_lists"):
        app.session_state[folded] = True
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def drawn(**query: str) -> AppTest:
    return press(open_page(**query), "playlist_draw")


def ids_of(app: AppTest) -> list[int]:
    return list(app.session_state["playlist"].song_ids)


@pytest.fixture(autouse=True)
def row_buttons(monkeypatch):
    """A button for each action of a row: AppTest cannot click into the component that draws the list."""

    def buttons(rows, *, key, on_action, editable=False, scroll_to=False):
        assert editable
        for index, row in enumerate(rows):
            for kind in ("keep", "drop", "another", "redraw", "why", "insert"):
                st.button(kind, key=f"{kind} {index}", on_click=on_action, args=(Action(kind, index, row.song_id),))
            down = Action("move", index, row.song_id, index + 1)
            st.button("down", key=f"down {index}", on_click=on_action, args=(down,))
            st.caption(f"{row.song_id}|{row.link}|{row.is_kept}")

    monkeypatch.setattr(playlist_view, "song_list", buttons)


@pytest.fixture(autouse=True)
def add_buttons(monkeypatch):
    """A button for every song and album where AppTest cannot type."""

    def find(label, *, key, search, on_pick, **_):
        for match in search("noise"):
            st.button(
                match.title, key=f"{key} {match.kind} {match.value}", on_click=on_pick, args=(match.kind, match.value)
            )

    monkeypatch.setattr(playlist_view, "find_song", find)


def links(app: AppTest) -> list[str]:
    """The reasons that stand between the rows."""
    rows = [c.value.split("|") for c in app.caption if c.value.count("|") == 2]
    return [reason for _, reason, _ in rows[1:]]


def select(app: AppTest, key: str, value: object) -> AppTest:
    app.session_state[key] = value
    app.run()
    assert not app.exception
    return app


# --- the form -------------------------------------------------------------------------------------


def test_a_form_that_nobody_touched_wishes_for_twelve_songs(full, requests):
    drawn()
    assert requests == [PlaylistRequest(length=12)]


def test_all_of_the_form_is_in_the_wish(taught, requests):
    songs = taught.songs()
    app = open_page()
    values = {
        "dialect": "mixed", "first": songs[0].id, "through": [songs[5].id, songs[9].id], "like": [songs[2].id],
        "by": "minutes", "minutes": 1, "surprise": 0.7, "prefer": "unheard", "spacing": 2,
        "tags": ["Genre tones", "Genre noise", "Genre clicks"], "no_artists": ["Artist noise"],
        "genres": ["Genre tones", "Genre clicks"], "years": (1971, 1992), "avoid_recent": False,
        "versions_apart": False,
    }  # fmt: skip
    for name, value in values.items():
        select(app, f"playlist_{name}", value)
    press(app, "playlist_draw")
    (request,) = requests
    assert (request.dialect, request.first, request.through) == ("mixed", songs[0].id, (songs[5].id, songs[9].id))
    assert (request.like, request.minutes, request.surprise, request.prefer) == ((songs[2].id,), 1.0, 0.7, "unheard")
    assert (request.spacing, request.rested, request.versions_apart) == (2, frozenset(), False)
    assert request.tags == {"Genre tones", "Genre noise", "Genre clicks"}
    assert request.no_artists == {"Artist noise"}
    assert (request.genres, request.years) == ({"Genre tones", "Genre clicks"}, (1971, 1992))
    assert ids_of(app)[0] == songs[0].id
    assert ids_of(app)[-1] == songs[9].id
    assert songs[5].id in ids_of(app)


def test_the_form_survives_a_switch_of_pages(full, requests):
    app = open_page()
    app.number_input(key="playlist_length").set_value(5).run()
    app.toggle(key="playlist_versions_apart").set_value(False).run()
    app.switch_page(PAGES["search"]).run()
    app.switch_page(PAGES["playlist"]).run()
    press(app, "playlist_draw")
    assert (requests[0].length, requests[0].versions_apart) == (5, False)


def test_a_song_that_is_left_out_stays_out_when_the_list_is_drawn_again(full, requests):
    out = full.songs()[3].id
    app = open_page()
    select(app, "playlist_exclude", [out])
    app.number_input(key="playlist_length").set_value(5).run()
    press(app, "playlist_draw")
    press(app, "playlist_route")
    press(app, "playlist_go_on")
    assert all(out in request.exclude for request in requests)
    assert out not in ids_of(app)


def test_a_seed_gives_the_same_list_again(full):
    app = open_page()
    app.number_input(key="playlist_seed").set_value(7).run()
    press(app, "playlist_draw")
    first = ids_of(app)
    app.toggle(key="playlist_avoid_recent").set_value(False).run()
    press(app, "playlist_draw")
    assert ids_of(app) == first


def test_a_dialect_says_what_it_was_learned_from(taught):
    app = open_page()
    assert any("Learned from 48 playlists" in c.value for c in app.caption)
    select(app, "playlist_dialect", "one artist")
    (said,) = [c.value for c in app.caption if "Learned from" in c.value]
    assert "Learned from 36 playlists" in said
    assert "better than shuffling on held-out playlists (the walk of all playlists: " in said
    assert "It uses " in said


def test_without_playlists_sound_leads_and_the_page_says_so(full):
    assert any("no playlists to learn from yet" in c.value for c in open_page().caption)


def test_the_chosen_song_of_another_page_comes_first(full, requests):
    song = full.songs()[7]
    app = AppTest.from_file(SHELL, default_timeout=60)
    app.query_params["song"] = str(song.id)
    app.run()
    app.switch_page(PAGES["playlist"]).run()
    press(app, "playlist_draw")
    assert requests[0].first == ids_of(app)[0] == song.id


def test_songs_of_the_last_lists_weigh_less_unless_that_is_switched_off(full, requests):
    saved = [song.id for song in full.songs()[:2]]
    full.add_playlists([("of today", None, saved)], source="saved")
    app = open_page()
    app.number_input(key="playlist_length").set_value(4).run()
    press(app, "playlist_draw")
    assert (requests[0].rested, requests[0].avoid_recent) == (frozenset(), True), "saved ones weigh less in any face"
    first = ids_of(app)
    press(app, "playlist_draw")
    assert requests[1].rested == set(first)
    app.toggle(key="playlist_avoid_recent").set_value(False).run()
    press(app, "playlist_draw")
    assert (requests[2].rested, requests[2].avoid_recent) == (frozenset(), False)


def test_a_wish_that_nothing_fits_leaves_the_list_and_says_why(full):
    app = drawn()
    before = ids_of(app)
    select(app, "playlist_no_artists", [f"Artist {kind}" for kind in ("tones", "noise", "clicks")])
    press(app, "playlist_draw")
    assert ids_of(app) == before
    assert any("No song matches your request" in e.value for e in app.error)
    assert not app.run().error, "said once"


def test_what_could_not_be_met_is_said(full):
    app = drawn()
    assert any("artists repeat" in i.value.lower() for i in app.info)


@pytest.mark.parametrize("section", ["Which is better?", "What leads from song to song"])
def test_other_sections_open_and_the_list_and_its_wish_are_still_there(taught, requests, section):
    app = open_page()
    app.number_input(key="playlist_length").set_value(5).run()
    press(app, "playlist_draw")
    ids = ids_of(app)
    select(app, "playlist_section", section)
    assert not app.error
    assert "Generate a playlist" not in [b.label for b in app.button]
    select(app, "playlist_section", "A playlist")
    assert ids_of(app) == ids
    press(app, "playlist_draw")
    assert requests[-1].length == 5


# --- one list, many drafts ------------------------------------------------------------------------


def test_every_change_is_undone_and_done_again(full):
    app = drawn()
    states = [app.session_state["playlist"]]
    for key in ("down 0", "keep 3", "drop 5", "another 2", "redraw 4", "playlist_around", "playlist_go_on",
                "playlist_route"):  # fmt: skip
        press(app, key)
        states.append(app.session_state["playlist"])
    assert app.button(key="playlist_redo").disabled
    for state in reversed(states[:-1]):
        press(app, "playlist_undo")
        assert app.session_state["playlist"] == state
    assert app.button(key="playlist_undo").disabled
    for state in states[1:]:
        press(app, "playlist_redo")
        assert app.session_state["playlist"] == state


def test_thirty_steps_back_are_possible(full):
    app = drawn()
    before = ids_of(app)
    for _ in range(31):
        press(app, "down 0")
    for _ in range(31):
        press(app, "playlist_undo")
    assert ids_of(app) == before


def test_a_moved_song_that_comes_back_has_its_reason_again(full):
    app = drawn()
    before = links(app)
    press(app, "down 3")
    press(app, "down 3")
    assert links(app) == before


def test_drawing_again_keeps_the_kept_ones_at_their_places(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(6).run()
    press(app, "playlist_draw")
    before = ids_of(app)
    assert app.button(key="playlist_around").disabled
    press(press(app, "keep 1"), "keep 4")
    seen = set()
    for _ in range(5):
        press(app, "playlist_around")
        after = ids_of(app)
        assert len(after) == 6
        assert (after[1], after[4]) == (before[1], before[4])
        seen.add(tuple(after))
    assert len(seen) > 1


def test_another_song_comes_at_one_place_only(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(6).run()
    press(app, "playlist_draw")
    before = ids_of(app)
    press(app, "another 2")
    after = ids_of(app)
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, True, False, True, True, True]


def test_what_comes_after_a_song_is_drawn_again_and_an_end_stays_the_end(full, requests):
    songs = full.songs()
    app = open_page()
    for name, value in (("first", songs[0].id), ("through", [songs[6].id, songs[11].id]), ("length", 8)):
        select(app, f"playlist_{name}", value)
    press(app, "playlist_draw")
    before = ids_of(app)
    press(app, "redraw 1")
    after = ids_of(app)
    assert after[:2] == before[:2]
    assert (after[-1], after.index(songs[6].id)) == (songs[11].id, before.index(songs[6].id))
    assert requests[-1].through == (songs[6].id, songs[11].id), "the line between the songs is still followed"


def test_going_on_keeps_the_list(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(4).run()
    press(app, "playlist_draw")
    before, reasons = ids_of(app), links(app)
    press(app, "playlist_go_on")
    assert ids_of(app)[:4] == before
    assert len(ids_of(app)) == 9
    assert links(app)[:3] == reasons


def test_another_route_has_other_songs_where_there_are_enough(full, requests):
    app = open_page()
    app.number_input(key="playlist_length").set_value(3).run()
    press(app, "playlist_draw")
    before = ids_of(app)
    press(app, "playlist_route")
    assert not set(ids_of(app)) & set(before)
    app.number_input(key="playlist_length").set_value(12).run()
    press(press(app, "playlist_draw"), "playlist_route")
    assert len(ids_of(app)) == 12, "where there are not, they come again"
    assert requests[-1].exclude == frozenset()


def test_a_step_is_explained_and_goes_another_way(full):
    app = press(drawn(), "why 2")
    assert len(app.get("dialog")) == 1
    shares = [float(re.search(r"(\d+)%", p.proto.text)[1]) for p in app.get("progress")]
    assert sum(shares) == pytest.approx(100, abs=0.5 * len(shares)), "whole per cents"
    assert sum(":material/check:" in p.proto.text for p in app.get("progress")) == 1
    press(app, "keep 5")  # a click elsewhere
    assert not app.get("dialog")


# --- save, open, address --------------------------------------------------------------------------


def test_a_playlist_is_saved_with_its_reasons_and_opened_again(full):
    app = press(drawn(), "keep 2")
    ids, reasons, draft = ids_of(app), links(app), app.session_state["playlist"]
    app.text_input(key="playlist_name").set_value("Evening").run()
    press(app, "playlist_save_it")
    (saved,) = full.playlists()
    assert (saved.name, saved.category, saved.source, list(saved.song_ids)) == ("Evening", None, "saved", ids)
    assert saved.details["seed"] == draft.seed
    assert [step[:2] for step in saved.details["taken"]] == [list(pair) for pair in pairwise(ids)]
    assert [step[2] for step in saved.details["taken"]] == reasons
    assert app.query_params["playlist"] == str(saved.id)
    fresh = open_page()
    press(fresh, "playlist_open")
    assert (ids_of(fresh), links(fresh)) == (ids, reasons)
    assert fresh.session_state["playlist"].kept == {ids[2]}
    assert fresh.text_input(key="playlist_name").value == "Evening"
    assert fresh.query_params["playlist"] == str(saved.id)
    press(fresh, "drop 0")
    assert "playlist" not in fresh.query_params, "it is no longer that list"
    press(fresh, "playlist_undo")
    assert fresh.query_params["playlist"] == str(saved.id)


def test_saving_under_a_name_that_is_taken_asks_first(full):
    app = press(drawn(), "playlist_save_it")
    press(app, "drop 0")
    press(app, "playlist_save_it")
    assert len(full.playlists()[0].song_ids) == 12
    assert any("will be replaced" in w.value for w in app.warning)
    press(app, "playlist_save_it")
    (saved,) = full.playlists()
    assert list(saved.song_ids) == ids_of(app)
    assert len(saved.song_ids) == 11
    assert not any("will be replaced" in w.value for w in app.warning)


def test_a_playlist_is_renamed_and_deleted(full):
    ids = [song.id for song in full.songs()[:3]]
    full.add_playlists([("One", None, ids, {"seed": 4}), ("Two", None, ids)], source="saved")
    app = open_page()
    app.text_input(key="playlist_renamed").set_value("Two").run()
    press(app, "playlist_rename_it")
    assert {p.name for p in full.playlists()} == {"One", "Two"}
    app.text_input(key="playlist_renamed").set_value("Three").run()
    press(app, "playlist_rename_it")
    assert {p.name: p.details for p in full.playlists()} == {"Two": None, "Three": {"seed": 4}}
    app.run()
    press(app, "playlist_delete_it")
    assert len(full.playlists()) == 1


def test_imported_playlists_are_listed_by_where_they_are_from(full):
    songs = full.songs()
    full.add_playlists([("Mine", None, [songs[0].id, songs[1].id])], source="saved")
    full.add_playlists([("Theirs", "party", [s.id for s in songs[2:6]])], source="jams.csv")
    app = open_page()
    assert app.selectbox(key="playlist_source").options == ["saved here (1)", "from jams.csv (1)"]
    app.selectbox(key="playlist_source").select("jams.csv").run()
    press(app, "playlist_open")
    assert ids_of(app) == [s.id for s in songs[2:6]]
    assert all(links(app)), "the likeliest reasons"
    assert app.button(key="playlist_route").disabled


def test_a_link_opens_its_playlist(full):
    ids = [song.id for song in full.songs()[4:8]]
    full.add_playlists([("Linked", None, ids)], source="saved")
    app = open_page(playlist=str(full.playlists()[0].id))
    assert not app.exception
    assert ids_of(app) == ids


@pytest.mark.parametrize("asked", ["99", "x", "-1", "²", "1" * 40])
def test_a_link_to_no_playlist_is_said(full, asked):
    app = open_page(playlist=asked)
    assert not app.exception
    assert any("not in this library" in e.value for e in app.error)
    assert "playlist" not in app.query_params
    assert not press(app, "playlist_draw").error


def test_songs_that_have_gone_are_passed_over(full):
    ids = [song.id for song in full.songs()]
    app = drawn()
    with full.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == ids[3]))
    app.run()
    assert not app.exception
    assert ids[3] not in ids_of(app)
    assert len(ids_of(app)) == 11


# --- for elsewhere --------------------------------------------------------------------------------


def test_a_missing_file_is_said_and_stands_in_the_list_as_a_comment(full):
    app = drawn()
    gone = full.songs()[0]
    with full.write() as connection:
        connection.execute(schema.files.update().where(schema.files.c.song_id == gone.id).values(missing_since=1.0))
    app.run()
    assert any(gone.title in w.value and "Skipped" in w.value for w in app.warning)
    assert any(gone.title in w.value and "no file" in w.value for w in app.warning)
    for kind in ("pls", "xspf", "jspf", "m3u8"):
        select(app, "playlist_format", kind)
        assert any(b.proto.label == "Download" for b in app.get("download_button"))


def test_a_list_is_queued_and_saved_in_mpd_where_one_is_set(full, collection, monkeypatch):
    for name in ("MPD_HOST", "MPD_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert "playlist_mpd_queue" not in [button.key for button in drawn().button]
    with real_mpd(collection) as running, running.client() as client:
        monkeypatch.setenv("MPD_HOST", str(running.socket))
        app = drawn()
        paths = {song.id: song.path for song in full.songs()}
        files = [str(paths[i].relative_to(collection)) for i in ids_of(app)]
        press(app, "playlist_mpd_queue")
        assert [entry["file"] for entry in client.playlistinfo()] == files
        press(app, "playlist_mpd_save")
        assert list(client.listplaylist("My playlist")) == files
        assert not app.error
        press(app, "playlist_mpd_save")
        assert any("“My playlist” already" in error.value for error in app.error)
        running.kill()
        press(app, "playlist_mpd_queue")
        assert any("does not answer" in error.value for error in app.error)


def test_a_list_is_saved_updated_kept_filled_and_deleted_on_a_server(full):
    there = {}

    def answer(call, values):
        if call == "createPlaylist":
            list_id = values.get("playlistId") or f"pl-{values['name']}"
            there[list_id] = values["name"]
            return {"playlist": {"id": list_id}}
        if call == "deletePlaylist":
            del there[values["id"]]
        if call == "getPlaylists":
            return {"playlists": {"playlist": [{"id": i, "name": name} for i, name in there.items()]}}
        return {}

    def kept():
        return ServerSongs(full).lists("home")

    assert "playlist_server_save" not in [button.key for button in drawn().button]
    with scripted(answer) as server:
        Connections(full).put(server.connection())
        songs = full.songs()
        ServerSongs(full).remember("home", [(song.id, [f"so-{song.id}"]) for song in songs])
        app = drawn()
        assert app.button(key="playlist_server_save").label == "Save “My playlist” on home"
        press(app, "playlist_server_save")
        assert kept()["My playlist"].request is None
        app.run()
        assert app.button(key="playlist_server_save").label == "Update “My playlist” on home"
        assert "playlist_server_refresh" not in [button.key for button in app.button]
        app.toggle(key="playlist_keep_home_My playlist").set_value(True).run()
        press(app, "playlist_server_save")
        assert there == {"pl-My playlist": "My playlist"}
        assert kept()["My playlist"].request is not None
        calls = len(server.asked)
        press(app, "playlist_server_refresh")
        assert not app.error
        assert [call for call, _, _ in server.asked[calls:]] == ["createPlaylist", "updatePlaylist"]
        app.number_input(key="playlist_around_home_My playlist").set_value(3).run()
        press(app, "playlist_server_save")
        assert any("nothing that was played there" in error.value for error in app.error)
        press(app, "playlist_server_delete_it")
        assert (there, kept()) == ({}, {})
        assert "playlist_server_delete_it" not in [button.key for button in app.button]
        assert len(ids_of(app)) == 12, "nothing changes here"


def test_songs_that_a_server_does_not_have_are_named(full):
    with scripted(lambda *_: {"playlist": {"id": "pl"}, "playlists": {"playlist": []}}) as server:
        Connections(full).put(server.connection())
        app = press(drawn(), "playlist_server_save")
        assert any("none of the songs" in error.value for error in app.error)


def test_a_list_goes_to_listenbrainz_where_a_token_is_kept(full):
    assert "playlist_listenbrainz" not in [button.key for button in drawn().button]
    keep_token(full, "a-token")
    app = press(drawn(), "playlist_listenbrainz")
    assert any("none of these songs has a MusicBrainz id" in error.value for error in app.error)


def test_a_mix_is_made_beside_the_page(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(2).run()
    press(app, "playlist_draw")
    for name, value in (("seconds", 5), ("fade", 1), ("format", ".wav")):
        select(app, f"playlist_mix_{name}", value)
    press(app, "playlist_mix_it")
    for _ in range(100):
        if any(b.key == "playlist_mix_play" for b in app.button):
            break
        time.sleep(0.1)
        app.run()
        assert not app.exception
    press(app, "playlist_mix_play")
    path = app.session_state["playlist_mix"]
    # two songs of four seconds, which cross for one
    assert soundfile.info(path).duration == pytest.approx(7.0, abs=0.2)
    assert np.abs(soundfile.read(path)[0]).max() > 0.1
    assert any(b.proto.label == "Download the mix" for b in app.get("download_button"))


def test_one_song_is_a_playlist_of_one(store, tmp_path, monkeypatch):
    store.add(write_song(tmp_path / "one.flac", title="Only one"))
    refresh(store)
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(store.folder))
    app = drawn()
    assert not app.error
    assert app.subheader[0].value.startswith("1 song · ")
    assert app.button(key="playlist_go_on").disabled
    press(app, "drop 0")
    assert not app.exception
    press(app, "playlist_undo")
    assert len(ids_of(app)) == 1


def opened(library, ids) -> AppTest:
    """The page with a list of some songs, opened by its address."""
    library.add_playlists([("opened", "", ids)], source="test")
    return open_page(playlist=str(library.playlists()[-1].id))


def test_songs_are_added_at_any_place_and_undone(full):
    noise = [song.id for song in full.songs() if song.artist == "Artist noise"]
    others = [song.id for song in full.songs() if song.artist != "Artist noise"][:4]
    app = press(press(opened(full, others), "insert 1"), f"playlist_add song {noise[2]}")
    assert ids_of(app) == [*others[:2], noise[2], *others[2:]]
    app = press(press(app, "playlist_add_end"), "playlist_add album Artist noise\nAlbum noise")
    assert ids_of(app) == [*others, *noise], "what was there already comes from where it was"
    app = press(app, "playlist_undo")
    assert ids_of(app) == [*others[:2], noise[2], *others[2:]]
    assert ids_of(press(app, "playlist_redo")) == [*others, *noise]


def test_repeats_are_removed_and_undone(full):
    first, second, third = (song.id for song in full.songs()[:3])
    full.edits.edit([third], {"title": f"{full.song(second).title} (live)"})
    assert not [b for b in opened(full, [first, second]).button if b.key == "playlist_repeats"]
    app = press(opened(full, [first, second, first, third]), "playlist_repeats")
    assert ids_of(app) == [first, second]
    assert ids_of(press(app, "playlist_undo")) == [first, second, first, third]
