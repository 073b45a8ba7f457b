"""The Playlists page without a browser: the form, generating, undoing, saving, opening, exporting."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.playlists.reason_weights import is_stable, read_factors
from musicsim.explorer.playlists.walk import Edge, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.matches import song_matches
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema
from musicsim.registry import sections_of
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.components.song_list import Action
from musicsim.ui.playlist import view as playlist_view
from musicsim.ui.playlist.request_form import plan_around, plan_from, request_of
from tests.pages.actions import downloads, press
from tests.waiting import PATIENCE_S


@pytest.fixture
def requests(monkeypatch):
    """All playlist requests, in order."""
    seen: list[PlaylistRequest] = []
    draw = Walk.generate

    def watched(walk, request, random_state=None, **options):
        seen.append(request)
        return draw(walk, request, random_state, **options)

    monkeypatch.setattr(Walk, "generate", watched)
    return seen


def open_page(**query: str) -> AppTest:
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S).run()
    app.switch_page(PAGES["playlist"])
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def from_menu(app: AppTest, choice: str) -> AppTest:
    app.menu_button(key="playlist_menu").click(choice).run()
    assert not app.exception
    return app


def drawn(**query: str) -> AppTest:
    return press(open_page(**query), "playlist_draw")


def ids_of(app: AppTest) -> list[int]:
    return list(app.session_state["playlist"].song_ids)


@pytest.fixture(autouse=True)
def row_buttons(monkeypatch):
    """A button for each action of a row: AppTest cannot click into the component that draws the list."""

    def buttons(_library, rows, *, key, on_action, editable=False):
        assert editable
        for index, row in enumerate(rows):
            for kind in ("keep", "drop", "another", "redraw", "why", "insert"):
                st.button(kind, key=f"{kind} {index}", on_click=on_action, args=(Action(kind, index, row.song_id),))
            down = Action("move", index, row.song_id, index + 1)
            st.button("down", key=f"down {index}", on_click=on_action, args=(down,))
            st.caption(f"{row.song_id}|{row.link}|{row.is_kept}")

    monkeypatch.setattr(playlist_view, "show_song_list", buttons)


@pytest.fixture(autouse=True)
def add_buttons(monkeypatch):
    """A button for every song and album, because AppTest cannot type."""

    def find(library, label, *, key, kinds, on_pick, **_):
        for match in song_matches(take_snapshot(library), "noise", kinds=kinds):
            st.button(
                match.title, key=f"{key} {match.kind} {match.value}", on_click=on_pick, args=(match.kind, match.value)
            )

    monkeypatch.setattr(playlist_view, "find_song", find)


def links(app: AppTest) -> list[str]:
    """Return the reasons between the rows."""
    rows = [c.value.split("|") for c in app.caption if c.value.count("|") == 2]
    return [reason for _, reason, _ in rows[1:]]


def select(app: AppTest, key: str, value: object) -> AppTest:
    app.session_state[key] = value
    app.run()
    assert not app.exception
    return app


# --- the form -------------------------------------------------------------------------------------


def test_default_request_is_twelve_songs(full, requests):
    drawn()
    assert requests == [PlaylistRequest(length=12)]


PARTS = ("length", "start", "end", "course", "songs", "more")


def sentence(app: AppTest) -> dict[str, str]:
    """Return the parts of the sentence, by the ends of their keys."""
    parts = [(one.proto.id.rpartition("playlist_part_")[2], one.proto.popover.label) for one in app.get("popover")]
    return {name: label.replace("\\", "") for name, label in parts if name in PARTS}


def test_sentence_states_options(full):
    songs = full.songs()
    app = open_page()
    assert sentence(app) == {
        "length": "12 songs", "start": "any song", "end": "any song", "course": "steady", "songs": "all songs",
        "more": "More options",
    }  # fmt: skip
    values = {
        "length": 1, "first": songs[0].id, "through": [songs[5].id, songs[9].id], "along": "tempo",
        "direction": "falling", "prefer": "unheard", "words": "noise", "no_artists": ["Artist clicks"],
        "exclude": [songs[3].id], "genres": ["Genre noise"], "surprise": 0.7, "seed": 7,
    }  # fmt: skip
    for name, value in values.items():
        app.session_state[f"playlist_{name}"] = value
    app.run()
    assert not app.exception
    assert sentence(app) == {
        "length": "1 song", "start": songs[0].title, "end": f"{songs[9].title} through {songs[5].title}",
        "course": "falling in tempo", "songs": "unheard songs: noise, not Artist clicks, Genre noise and 1 more",
        "more": "More options: surprise 70%, seed 7",
    }  # fmt: skip
    select(app, "playlist_by", "minutes")
    assert sentence(app)["length"] == "60 minutes"


def test_playlist_of_large_library_lasts_an_hour(full):
    with full.write() as connection:
        connection.execute(schema.songs.update().values(duration_s=900.0))
    assert sentence(open_page())["length"] == "60 minutes"


def test_form_values_are_in_request(taught, requests):
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


def test_form_survives_page_switch(full, requests):
    app = open_page()
    app.number_input(key="playlist_length").set_value(5).run()
    app.toggle(key="playlist_versions_apart").set_value(False).run()
    app.switch_page(PAGES["listen"]).run()
    app.switch_page(PAGES["playlist"]).run()
    press(app, "playlist_draw")
    assert (requests[0].length, requests[0].versions_apart) == (5, False)


def test_excluded_song_stays_out_after_regenerating(full, requests):
    out = full.songs()[3].id
    app = open_page()
    select(app, "playlist_exclude", [out])
    app.number_input(key="playlist_length").set_value(5).run()
    press(app, "playlist_draw")
    press(app, "playlist_draw")
    from_menu(app, "Generate 5 more songs")
    assert all(out in request.exclude for request in requests)
    assert out not in ids_of(app)


def test_same_seed_gives_same_playlist(full):
    app = open_page()
    app.session_state["playlist_seed"] = 7
    press(app.run(), "playlist_draw")
    first = ids_of(app)
    app.toggle(key="playlist_avoid_recent").set_value(False).run()
    press(app, "playlist_draw")
    assert ids_of(app) == first


def test_dialect_shows_its_training_playlists(taught):
    app = open_page()
    assert any("Learned from 48 playlists" in c.value for c in app.caption)
    select(app, "playlist_dialect", "one artist")
    assert any("Learned from 36 playlists" in c.value for c in app.caption)
    assert sentence(app)["course"] == "steady, like one artist"


def test_song_of_another_page_comes_first(full):
    song, snapshot = full.songs()[7], take_snapshot(full)
    plan_from(song.id)
    assert request_of(snapshot).first == song.id
    plan_around([song.id])
    assert list(request_of(snapshot).like) == [song.id]


def test_recent_songs_weigh_less_unless_switched_off(full, requests):
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


def test_unsatisfiable_request_keeps_playlist_and_gives_error(full):
    app = drawn()
    before = ids_of(app)
    select(app, "playlist_no_artists", [f"Artist {kind}" for kind in ("tones", "noise", "clicks")])
    press(app, "playlist_draw")
    assert ids_of(app) == before
    assert any("No song matches your request" in e.value for e in app.error)
    assert not app.run().error, "said once"


def test_unmet_conditions_are_reported(full):
    app = drawn()
    assert any("artists repeat" in i.value.lower() for i in app.info)


@pytest.mark.long
@pytest.mark.parametrize("section", [section.title for _, section in sections_of("playlist")])
def test_playlist_and_request_survive_other_sections(taught, requests, section):
    app = open_page()
    app.number_input(key="playlist_length").set_value(5).run()
    press(app, "playlist_draw")
    ids = ids_of(app)
    select(app, "playlist_section", section)
    assert not app.error
    assert "Generate" not in [b.label for b in app.button]
    press(app, "playlist_back")
    assert ids_of(app) == ids
    press(app, "playlist_draw")
    assert requests[-1].length == 5


# --- drafts of one playlist -----------------------------------------------------------------------


@pytest.mark.long
def test_every_change_can_be_undone_and_redone(full):
    app = drawn()
    states = [app.session_state["playlist"]]
    for key in ("down 0", "keep 3", "drop 5", "another 2", "redraw 4", "Generate 1 more song", "playlist_draw"):
        (from_menu if " more " in key else press)(app, key)
        states.append(app.session_state["playlist"])
    assert app.button(key="playlist_redo").disabled
    for state in reversed(states[:-1]):
        press(app, "playlist_undo")
        assert app.session_state["playlist"] == state
    assert app.button(key="playlist_undo").disabled
    for state in states[1:]:
        press(app, "playlist_redo")
        assert app.session_state["playlist"] == state


@pytest.mark.long
def test_more_than_thirty_steps_can_be_undone(full):
    app = drawn()
    before = ids_of(app)
    for _ in range(31):
        press(app, "down 0")
    for _ in range(31):
        press(app, "playlist_undo")
    assert ids_of(app) == before


def test_song_moved_back_has_same_reason(full):
    app = drawn()
    before = links(app)
    press(app, "down 3")
    press(app, "down 3")
    assert links(app) == before


def test_generating_keeps_positions_of_pinned_songs(full, requests):
    app = open_page()
    app.number_input(key="playlist_length").set_value(6).run()
    press(app, "playlist_draw")
    before = ids_of(app)
    press(press(app, "keep 1"), "keep 4")
    seen = set()
    for _ in range(5):
        press(app, "playlist_draw")
        after = ids_of(app)
        assert len(after) == 6
        assert (after[1], after[4]) == (before[1], before[4])
        assert app.session_state["playlist"].kept == {before[1], before[4]}
        seen.add(tuple(after))
    assert len(seen) > 1
    app.number_input(key="playlist_length").set_value(3).run()
    press(app, "playlist_draw")
    assert (ids_of(app)[1], ids_of(app)[4]) == (before[1], before[4]), "longer than the request, as a pin is there"
    from_menu(app, "Start over without pins")
    assert requests[-1].keep == {}
    assert (len(ids_of(app)), app.session_state["playlist"].kept) == (3, frozenset())
    press(app, "playlist_undo")
    assert app.session_state["playlist"].kept == {before[1], before[4]}


def test_first_song_of_sentence_replaces_its_pin(full, requests):
    app = drawn()
    pinned = ids_of(app)[3]
    select(press(app, "keep 3"), "playlist_first", pinned)
    press(app, "playlist_draw")
    assert requests[-1].keep == {}
    assert ids_of(app)[0] == pinned


def test_replacing_song_changes_only_that_song(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(6).run()
    press(app, "playlist_draw")
    before = ids_of(app)
    press(app, "another 2")
    after = ids_of(app)
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, True, False, True, True, True]


def test_regenerating_tail_keeps_start_and_end(full, requests):
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


def test_adding_more_songs_keeps_playlist(full):
    app = open_page()
    app.number_input(key="playlist_length").set_value(4).run()
    press(app, "playlist_draw")
    before, reasons = ids_of(app), links(app)
    from_menu(app, "Generate 5 more songs")
    assert ids_of(app)[:4] == before
    assert len(ids_of(app)) == 9
    assert links(app)[:3] == reasons


def test_reasons_that_differ_in_years_are_one():
    shares = {"both from 2015": 0.2, "both from 2015-2024": 0.1, "both calm and from 2015": 0.3, "both calm": 0.4}
    merged = playlist_view.merge_alike([Edge("", share, label) for label, share in shares.items()], "both calm")
    assert {edge.label: round(edge.probability, 6) for edge in merged} == {"both calm": 0.7, "both from 2015": 0.3}


def test_transition_is_explained(full):
    app = press(drawn(), "why 2")
    assert len(app.get("dialog")) == 1
    shares = [float(re.search(r"(\d+)%", p.proto.text)[1]) for p in app.get("progress")]
    assert sum(shares) == pytest.approx(100, abs=0.5 * len(shares)), "whole per cents"
    assert sum(":material/check:" in p.proto.text for p in app.get("progress")) == 1
    press(app, "playlist_another_way")
    assert not app.get("dialog")


def drawn_by_edges() -> AppTest:
    """Generate a short playlist whose steps follow edges, because songs by one artist may be next to each other."""
    app = open_page()
    for name, value in (("spacing", 0), ("length", 6), ("surprise", 0.5), ("seed", 1)):
        app.session_state[f"playlist_{name}"] = value
    return press(app.run(), "playlist_draw")


def test_reason_is_left_out_and_lowered(full):
    app = drawn_by_edges()
    draft = app.session_state["playlist"]
    pairs = list(pairwise(draft.song_ids))
    place = next(n for n, pair in enumerate(pairs, 1) if is_stable(draft.edges[pair].name))
    edge = draft.edges[pairs[place - 1]]
    app = press(app, f"why {place}")
    assert any("Without this reason, it would have been" in text.value for text in app.markdown)
    press(app, "playlist_less_often")
    assert read_factors(full) == {edge.name: 0.25}
    app = press(app, f"why {place}")
    press(app, "playlist_veto")
    after = app.session_state["playlist"]
    assert after.song_ids[:place] == draft.song_ids[:place]
    new = pairwise(after.song_ids[place - 1 :])
    assert edge.name not in {after.edges[pair].name for pair in new}
    assert app.session_state["playlist_not_because"] == [edge.name]
    assert "without 1 reason" in str([block.proto for block in app.get("popover")])
    app.session_state["research_section"] = "walk"
    press(app.switch_page(PAGES["research"]).run(), "weights_restore_0")
    assert read_factors(full) == {}


def test_effects_of_reasons_are_shown_on_request(full):
    app = drawn_by_edges()
    assert not any("without it" in link for link in links(app))
    app.session_state["playlist_effects"] = True
    assert any(re.search(r"\d% → .*% without it", link) for link in links(app.run()))


@pytest.mark.parametrize("opener", ["why 2", "insert 1"])
def test_dialog_stays_open_until_page_is_left(full, opener):
    app = press(drawn(), opener)
    app.run()  # as at the end of a job
    assert len(app.get("dialog")) == 1
    app.switch_page(PAGES["library"]).run()
    app.switch_page(PAGES["playlist"]).run()
    assert not app.get("dialog")


# --- save, open, address --------------------------------------------------------------------------


def test_playlist_is_saved_with_reasons_and_reopened(full):
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
    press(fresh, f"saved_{saved.id}_open")
    assert (ids_of(fresh), links(fresh)) == (ids, reasons)
    assert fresh.session_state["playlist"].kept == {ids[2]}
    assert fresh.text_input(key="playlist_name").value == "Evening"
    assert fresh.query_params["playlist"] == str(saved.id)
    press(fresh, "drop 0")
    assert "playlist" not in fresh.query_params, "it is no longer that list"
    press(fresh, "playlist_undo")
    assert fresh.query_params["playlist"] == str(saved.id)


def test_reopened_playlist_fills_in_its_request(full, requests):
    app = open_page()
    first, last = (full.songs()[at].id for at in (1, 7))
    state = {
        "first": first,
        "through": [last],
        "length": 6,
        "surprise": 0.1,
        "tempo": (40.0, 240.0),
        "words": "minutes:..60",
    }
    for name, value in state.items():
        app.session_state[f"playlist_{name}"] = value
    app.session_state["playlist_by"] = "songs"
    press(app.run(), "playlist_draw")
    app.text_input(key="playlist_name").set_value("Evening").run()
    press(app, "playlist_save_it")
    fresh = open_page()
    press(fresh, f"saved_{full.playlists()[0].id}_open")
    press(fresh, "playlist_draw")
    asked, again = requests[0], requests[-1]
    assert len(requests) == 2
    assert asked.stops == (first, last)
    assert replace(again, rested=asked.rested) == asked


def test_reopened_playlist_with_default_options_clears_the_form(full):
    ids = [song.id for song in full.songs()[:3]]
    full.add_playlists([("Any", None, ids, {"request": {}}), ("Theirs", None, ids)], source="saved")
    for number, tempo in ((0, None), (1, (90.0, 120.0))):  # a list without a request leaves the form as it is
        app = open_page()
        app.session_state["playlist_tempo"] = (90.0, 120.0)
        press(app.run(), f"saved_{full.playlists()[number].id}_open")
        assert app.session_state["playlist_tempo"] == tempo


def test_saving_under_existing_name_asks_first(full):
    app = drawn()
    first, last = (full.song(ids_of(app)[end]).title for end in (0, -1))
    assert app.text_input(key="playlist_name").value == f"{first} → {last}"
    press(app, "playlist_save_it")
    press(app, "drop 5")
    press(app, "playlist_save_it")
    assert len(full.playlists()[0].song_ids) == 12
    assert any("will be replaced" in w.value for w in app.warning)
    press(app, "playlist_save_it")
    (saved,) = full.playlists()
    assert list(saved.song_ids) == ids_of(app)
    assert len(saved.song_ids) == 11
    assert not any("will be replaced" in w.value for w in app.warning)


@pytest.mark.long
def test_playlist_is_renamed_and_deleted(full):
    ids = [song.id for song in full.songs()[:3]]
    full.add_playlists([("One", None, ids, {"seed": 4}), ("Two", None, ids)], source="saved")
    one, two = (playlist.id for playlist in full.playlists())
    app = rename(open_page(), one, "Two")
    assert {p.name for p in full.playlists()} == {"One", "Two"}
    rename(app, one, "Three")
    assert {p.name: p.details for p in full.playlists()} == {"Two": None, "Three": {"seed": 4}}
    app.run()
    app.menu_button(key=f"saved_{two}_menu").click("Delete").run()
    press(app, "playlist_delete_it")
    assert [p.name for p in full.playlists()] == ["Three"]


def rename(app: AppTest, playlist_id: int, name: str) -> AppTest:
    app.menu_button(key=f"saved_{playlist_id}_menu").click("Rename").run()
    app.text_input(key="playlist_renamed").set_value(name).run()
    return press(app, "playlist_rename_it")


def test_own_playlists_come_before_imported_ones(full):
    songs = full.songs()
    full.add_playlists([("Theirs", "party", [s.id for s in songs[2:6]])], source="jams.csv")
    full.add_playlists([("Mine", None, [songs[0].id, songs[1].id])], source="saved")
    full.add_playlists([("Mix", None, [songs[0].id], {"seed": 1})], source="Daily mixes")
    app = open_page()
    names = [b.label for b in app.button if b.key and b.key.startswith("saved_")]
    assert names == ["Mine", "Theirs"], "generated lists of others have a group of their own"
    assert any(
        re.search(r"^4 songs · \d+:\d\d · from jams.csv, today at", c.value.replace("\\", "")) for c in app.caption
    )
    theirs = next(p for p in full.playlists() if p.name == "Theirs")
    press(app, f"saved_{theirs.id}_open")
    assert ids_of(app) == [s.id for s in songs[2:6]]
    assert any(links(app)), "the likeliest reasons"
    assert sentence(app)["length"] == "4 songs", "the sentence fits the opened playlist"
    press(app, "playlist_close")
    assert "saved_" in "".join(b.key or "" for b in app.button)
    press(app, "playlist_undo")
    assert ids_of(app) == [s.id for s in songs[2:6]]


def test_one_of_many_playlists_is_found_by_its_name(full):
    full.add_playlists([(f"List {n}", None, [full.songs()[n].id]) for n in range(11)], source="saved")
    app = open_page()
    assert any("3 more playlists" in c.value for c in app.caption)
    app.text_input(key="playlist_search").set_value("10 list").run()
    assert [b.label for b in app.button if (b.key or "").startswith("saved_")] == ["List 10"]
    app.text_input(key="playlist_search").set_value("xyzzy").run()
    assert any("No playlist has “xyzzy” in its name." in c.value for c in app.caption)


def test_largest_step_of_a_path_is_shown(full):
    songs = full.songs()
    app = open_page()
    for name, value in (("first", songs[0].id), ("through", [songs[7].id]), ("length", 6)):
        app.session_state[f"playlist_{name}"] = value
    press(app.run(), "playlist_draw")
    snapshot = take_snapshot(full)
    steps = np.linalg.norm(np.diff(snapshot.vectors_at(snapshot.rows_of(ids_of(app))), axis=0), axis=1)
    start = full.song(ids_of(app)[int(np.argmax(steps))])
    (said,) = [c.value for c in app.caption if "largest step" in c.value]
    assert f"from “{start.title}”" in said
    assert f"{steps.max() / np.median(steps):.1f} times" in said


def test_link_opens_playlist(full):
    ids = [song.id for song in full.songs()[4:8]]
    full.add_playlists([("Linked", None, ids)], source="saved")
    app = open_page(playlist=str(full.playlists()[0].id))
    assert not app.exception
    assert ids_of(app) == ids


@pytest.mark.long
@pytest.mark.parametrize("asked", ["99", "x", "-1", "²", "1" * 40])
def test_link_to_unknown_playlist_gives_clear_error(full, asked):
    app = open_page(playlist=asked)
    assert not app.exception
    assert any("not in this library" in e.value for e in app.error)
    assert "playlist" not in app.query_params
    assert any("not in this library" in e.value for e in app.run().error), "it stays until the next request"
    assert not press(app, "playlist_draw").error


def test_deleted_songs_are_skipped(full):
    ids = [song.id for song in full.songs()]
    app = drawn()
    with full.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == ids[3]))
    app.run()
    assert not app.exception
    assert ids[3] not in ids_of(app)
    assert len(ids_of(app)) == 11


# --- export ---------------------------------------------------------------------------------------


def test_missing_file_gives_warning_and_allows_export(full):
    app = drawn()
    gone = full.songs()[0]
    with full.write() as connection:
        connection.execute(schema.files.update().where(schema.files.c.song_id == gone.id).values(missing_since=1.0))
    app.run()
    assert any(gone.title in w.value and "Skipped" in w.value for w in app.warning)
    assert any(gone.title in w.value and "no file" in w.value for w in app.warning)
    for kind in ("pls", "xspf", "jspf", "m3u8"):
        select(app, "playlist_format", kind)
        assert "Download" in downloads(app)


def opened(library, ids) -> AppTest:
    """Open a playlist of some songs by its address."""
    library.add_playlists([("opened", "", ids)], source="test")
    return open_page(playlist=str(library.playlists()[-1].id))


def test_songs_are_inserted_anywhere_and_undone(full):
    noise = [song.id for song in full.songs() if song.artist == "Artist noise"]
    others = [song.id for song in full.songs() if song.artist != "Artist noise"][:4]
    app = press(press(opened(full, others), "insert 1"), f"playlist_add song {noise[2]}")
    assert ids_of(app) == [*others[:2], noise[2], *others[2:]]
    app = press(from_menu(app, "Add songs"), "playlist_add album Artist noise\nAlbum noise")
    assert ids_of(app) == [*others, *noise], "what was there already comes from where it was"
    app = press(app, "playlist_undo")
    assert ids_of(app) == [*others[:2], noise[2], *others[2:]]
    assert ids_of(press(app, "playlist_redo")) == [*others, *noise]


def test_repeats_are_removed_and_undone(full):
    first, second, third = (song.id for song in full.songs()[:3])
    full.edits.edit([third], {"title": f"{full.song(second).title} (live)"})
    assert not any("repeat" in choice for choice in opened(full, [first, second]).menu_button[0].options)
    app = from_menu(opened(full, [first, second, first, third]), "Remove 2 repeats")
    assert ids_of(app) == [first, second]
    assert ids_of(press(app, "playlist_undo")) == [first, second, first, third]
