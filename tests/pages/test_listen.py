"""Listen without a browser: clicks, outlines, text, filters, chips and the queue."""

import json

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.search.matches import name_matches
from musicsim.explorer.search.query import Examples, find_similar, find_similar_artists
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library, Song
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.base.keys import persistent_keys
from musicsim.ui.components import song_finder
from musicsim.ui.components.song_list import Action
from musicsim.ui.listen import conditions, map_column, queue_view, selection
from tests.pages.actions import end_just_after_first_look, press, queue
from tests.waiting import PATIENCE_S

SEARCHED = "searched"


@pytest.fixture(autouse=True)
def buttons(monkeypatch):
    """Text fields that replace actions AppTest cannot do in a component: ids to click, to encircle, to choose."""

    def stand_in(snapshot, *, key, on_pick=None, on_outline=None, **options):
        by_artist: dict[str | None, list[int]] = {}
        for song in snapshot.library.songs():
            by_artist.setdefault(song.artist, []).append(song.id)
            st.button("click", key=f"{key} click {song.id}", on_click=on_pick, args=(song.id,))
        for artist, ids in by_artist.items():
            rows = snapshot.row_ids[snapshot.rows_of(ids)]
            st.button("lasso", key=f"{key} lasso {artist}", on_click=on_outline, args=(rows,), disabled=not on_outline)
        st.caption(f"{key}: {options['chosen']} {sorted(int(i) for i in options['marked'])}")

    def find(label, *, key, search, on_pick, **_):
        for match in search(st.session_state.get(SEARCHED, "")):
            st.button(
                match.title, key=f"{key} {match.kind} {match.value}", on_click=on_pick, args=(match.kind, match.value)
            )

    monkeypatch.setattr(map_column, "song_map", stand_in)
    for module in (song_finder, conditions):
        monkeypatch.setattr(module, "find_song", find)


def open_page(**session: object) -> AppTest:
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    for key, value in session.items():
        app.session_state[key] = value
    app.run()
    assert not app.exception
    return app


def headings(app: AppTest) -> list[str]:
    return [s.value for s in app.header]


def shown_on_map(app: AppTest, key: str = "explore_map") -> str:
    return next(c.value for c in app.caption if c.value.startswith(f"{key}:"))


def played(app: AppTest) -> list[int]:
    """Return the songs of the last command to the player."""
    return [t["song_id"] for t in app.session_state["player.link"].commands[-1].payload["tracks"]]


def listed(app: AppTest) -> list[int]:
    return [row["song_id"] for row in queue(app)]


def nearest(app: AppTest) -> list[int]:
    """Return the songs before the walk."""
    return [row["song_id"] for row in queue(app) if row["similarity"] is not None]


def pills(app: AppTest, key: str) -> list[str]:
    return list(app.button_group(key=key).options)


def of_artist(library: Library, artist: str) -> list[Song]:
    return [song for song in library.songs() if song.artist == artist]


def test_click_plays_song_and_queue_follows(full):
    song = full.songs()[5]
    app = press(open_page(), f"explore_map click {song.id}")
    assert song.title in headings(app)
    assert sorted([song.id, *listed(app)]) == sorted(s.id for s in full.songs()), "nothing twice, nothing left out"
    assert played(app) == [song.id, *listed(app)]
    assert shown_on_map(app) == f"explore_map: {song.id} {sorted(nearest(app))}"
    assert sorted(nearest(app)) == sorted(hit.song.id for hit in find_similar(take_snapshot(full), song.id, 10))


def test_whole_queue_is_shown_if_it_is_ready_just_after_page_looked(full, monkeypatch):
    end_just_after_first_look(monkeypatch)
    song = full.songs()[5]
    app = press(open_page(), f"explore_map click {song.id}")
    assert sorted([song.id, *listed(app)]) == sorted(s.id for s in full.songs())


def test_similar_artist_plays_songs_nearest_to_chosen_song(full):
    song = full.songs()[5]
    app = press(open_page(), f"explore_map click {song.id}")
    app.session_state["search_more"] = app.session_state["explore_artists"] = True
    app.run()
    (artist, entries), *others = find_similar_artists(take_snapshot(full), song.id, 5).items()
    assert len(others) == 1, "the library has three artists"
    assert artist in app.button(key="similar_artist_0").label
    press(app, "similar_artist_0")
    assert played(app) == [hit.song.id for hit in entries]


def test_clicking_song_that_went_missing_is_no_error(full):
    song = full.songs()[5]
    app = open_page()
    full.files.mark(missing=[song.path], back=[])
    app = press(app, f"explore_map click {song.id}")
    assert "Start here" in headings(app)


def test_lasso_marks_songs_and_chooses_single_song(full):
    songs = of_artist(full, "Artist noise")
    app = press(open_page(), "explore_map lasso Artist noise")
    assert headings(app)[0] == "4 songs marked"
    assert shown_on_map(app) == f"explore_map: None {[song.id for song in songs]}"
    press(app, next(b.key for b in app.button if b.label == "Play them"))
    assert sorted(played(app)) == [song.id for song in songs]
    full.edits.edit([songs[0].id], {"artist": "Alone"})
    app = press(app.run(), "explore_map lasso Alone")
    assert songs[0].title in headings(app)
    assert not any("marked" in heading for heading in headings(app))


def test_only_some_of_many_marked_songs_have_ring(full, monkeypatch):
    monkeypatch.setattr(selection, "MAX_MARKED", 3)
    monkeypatch.setattr(selection, "MAX_PLAYED", 3)
    app = press(open_page(), "explore_map lasso Artist tones")
    assert headings(app)[0] == "4 songs marked"
    assert any(c.value == "3 shown with a ring." for c in app.caption)
    assert any(b.label == "Play 3 of them" for b in app.button)


def test_title_plays_and_artist_is_marked(full):
    song = of_artist(full, "Artist clicks")[1]
    app = open_page(searched="clicks")
    assert [b.label for b in app.button if b.key.startswith("listen_find artist")] == ["Artist clicks"]
    app = press(app, "listen_find artist Artist clicks")
    assert headings(app)[0] == "4 songs marked"
    assert {s.id for s in of_artist(full, "Artist clicks")} == set(played(app)[:4])
    app = press(app, f"listen_find song {song.id}")
    assert headings(app)[0] == song.title
    assert f": {song.id} " in shown_on_map(app)
    assert played(app)[0] == song.id


def test_examples_are_added_and_removed_by_click(full):
    noise, tones = (of_artist(full, f"Artist {kind}") for kind in ("noise", "tones"))
    app = open_page(chosen=tones[0].id, searched=noise[0].title, search_more=True)
    alone = nearest(app)
    app = press(app, f"search_add song {noise[0].id}")
    assert pills(app, "search_like") == [f"{noise[0].label} ✕"]
    both = nearest(app)
    assert noise[0].id not in both
    expected = find_similar(take_snapshot(full), Examples((tones[0].id, noise[0].id)), 10)
    assert sorted(both) == sorted(hit.song.id for hit in expected)
    app.button_group(key="search_like").set_value(0).run()
    assert nearest(app) == alone
    app.button_group(key="search_sign").set_value(-1).run()
    app = press(app, f"search_add song {noise[0].id}")
    assert pills(app, "search_unlike") == [f"{noise[0].label} ✕"]
    assert noise[0].id not in nearest(app)
    full.files.mark(missing=[noise[0].path], back=[])
    app.run()
    assert not app.exception
    assert "search_unlike" not in {group.key for group in app.get("button_group")}, "it has left the library"
    app.session_state["chosen"] = noise[1].id
    app.run()
    assert "search_unlike" not in {group.key for group in app.get("button_group")}, "another search"


def test_words_start_queue_and_narrow_other_one(full):
    noise = of_artist(full, "Artist noise")
    app = open_page(searched="genre noise xyzzy")
    app = press(app, "listen_find words genre noise")
    assert headings(app)[-1] == "4 songs that match"
    assert set(listed(app)) == {song.id for song in noise} == set(played(app))
    app.session_state["search_words"] = "genre noise 1980 xyzzy"
    app.run()
    assert pills(app, "search_parts") == ["“Genre noise” ✕", "1980 ✕"]
    assert any("“xyzzy”" in c.value for c in app.caption)
    assert listed(app) == [noise[0].id]
    app.button_group(key="search_parts").set_value(1).run()
    assert app.session_state["search_words"] == "genre noise xyzzy"
    app.session_state["chosen"] = noise[0].id
    assert set(listed(app.run())) == {song.id for song in noise[1:]}


def test_training_from_lasso_opens_training_instead_of_last_section(full):
    app = open_page()
    app.session_state["train_section"] = "compare"
    app.session_state["selection_table"] = True
    app = press(app, "explore_map lasso Artist noise")
    next(box for box in app.text_input if box.label == "Tag").set_value("noisy").run()
    next(button for button in app.button if button.label == "Add and train").click().run()
    assert not app.exception
    assert app.session_state["train_section"] == "train"


def test_search_from_lasso_uses_marked_songs_as_examples(full):
    noise = of_artist(full, "Artist noise")
    app = press(open_page(), "explore_map lasso Artist noise")
    press(app, "selection_search")
    assert app.session_state["chosen"] == noise[0].id == played(app)[0]
    assert not {song.id for song in noise} & set(listed(app))
    assert pills(app, "search_like") == [f"{song.label} ✕" for song in noise[1:]]


def test_filters_offer_values_of_library(full):
    app = open_page(chosen=full.songs()[0].id)
    assert app.multiselect(key="search_artists").options == ["Artist clicks", "Artist noise", "Artist tones"]
    assert app.slider[0].value == (1970, 1993)
    app.multiselect(key="search_genres").select("Genre noise").run()
    assert set(listed(app)) == {song.id for song in of_artist(full, "Artist noise")}
    app.slider[0].set_value((1980, 1980)).run()
    of_1980 = [song.id for song in of_artist(full, "Artist noise") if song.year == 1980]
    assert listed(app) == of_1980


def test_no_names_are_sent_before_typing(full, monkeypatch):
    monkeypatch.setattr(song_finder, "FEW", 0)
    app = open_page(chosen=full.songs()[0].id, search_filters=True)
    assert not app.multiselect
    boxes = [json.loads(c.proto.json) for c in app.get("bidi_component") if c.proto.component_name.endswith("finder")]
    assert [box["label"] for box in boxes] == [
        "Artists",
        "Without these artists",
        "Genres",
        "Tags",
        "Without these tags",
        "Folders",
        "Without these folders",
        "Keys",
        "Modes",
    ]
    assert all(box["matches"] == [] for box in boxes)
    assert len(listed(app)) == 11, "nothing is filtered"


def test_prefix_matches_come_first():
    names = ["Blue Note", "note", "The Notes", "Notebook", "Other"]
    found = [match.value for match in name_matches(names, "NOTE")]
    assert found == ["Notebook", "note", "Blue Note", "The Notes"]
    assert len(name_matches([f"note {n}" for n in range(100)], "note")) == 20


def rows_for_keys(monkeypatch) -> None:
    """Draw buttons for the actions on each row: AppTest cannot click into the component that draws the list."""
    song_list = queue_view.song_list

    def with_buttons(rows, *, on_action, **options):
        song_list(rows, on_action=on_action, **options)
        for index, row in enumerate(rows):
            for kind in ("play", "keep", "drop", "similar"):
                action = Action(kind, index, row.song_id)
                st.button(kind, key=f"{kind} {row.song_id}", on_click=on_action, args=(action,))

    monkeypatch.setattr(queue_view, "song_list", with_buttons)


def test_pinned_song_keeps_place_and_removed_one_stays_away(full, monkeypatch):
    rows_for_keys(monkeypatch)
    app = press(open_page(), f"explore_map click {full.songs()[5].id}")
    before = listed(app)
    press(app, f"keep {before[4]}")
    assert [row["is_kept"] for row in queue(app)].index(True) == 4
    press(app, f"drop {before[1]}")
    assert before[1] not in listed(app)
    assert listed(app)[4] == before[4]
    app.button(key="listen_undo").click().run()
    assert listed(app) == before
    app.button(key="listen_undo").click().run()
    assert not any(row["is_kept"] for row in queue(app))


def test_row_plays_from_its_place(full, monkeypatch):
    rows_for_keys(monkeypatch)
    song = full.songs()[5]
    app = open_page(chosen=song.id)
    ids = listed(app)
    press(app, f"play {ids[2]}")
    command = app.session_state["player.link"].commands[-1].payload
    assert (command["kind"], command["start"]) == ("play", 3)
    assert played(app) == [song.id, *ids]


def test_chips_change_queue_and_are_removed(full):
    app = open_page(chosen=full.songs()[5].id)
    before = listed(app)
    for _ in range(3):
        (button,) = [b for b in app.button if b.label == "More surprising"]
        button.click().run()
    assert len(nearest(app)) == 1
    assert pills(app, "listen_direction") == ["more surprising ✕"]
    app.button_group(key="listen_direction").set_value(0).run()
    assert listed(app) == before
    (button,) = [b for b in app.button if b.label == "Calmer"]
    button.click().run()
    assert not app.exception
    assert pills(app, "listen_direction") == ["calmer ✕"]


def test_queue_leads_to_chosen_target(full):
    first, *_, last = full.songs()
    app = open_page(chosen=first.id, searched=last.title, listen_to=True)
    press(app, f"listen_target song {last.id}")
    assert pills(app, "listen_direction") == [f"to {last.title} ✕"]
    assert last.id in listed(app)


def test_queue_becomes_playlist_with_its_pins(full, monkeypatch):
    rows_for_keys(monkeypatch)
    song = full.songs()[5]
    app = open_page(chosen=song.id)
    pinned = listed(app)[2]
    press(app, f"keep {pinned}")
    ids = listed(app)
    press(app, "listen_save_it")
    (saved,) = full.playlists(source="saved")
    assert saved.name == f"From {song.title}"
    assert list(saved.song_ids) == [song.id, *ids]
    app.session_state["playlist_section"] = "Weights"  # the part of Playlist that was open last
    app.button(key="listen_open").click().run()
    assert not app.exception
    assert app.session_state["playlist_section"] == ""
    assert app.session_state["playlist"].song_ids == saved.song_ids
    app.switch_page(PAGES["playlist"]).run()
    press(app, "playlist_draw")
    edited = app.session_state["playlist"]
    assert (len(edited.song_ids), edited.song_ids[3], edited.kept) == (len(ids) + 1, pinned, {pinned})


def test_thumb_down_in_player_keeps_song_out(full):
    song = full.songs()[5]
    disliked = listed(open_page(chosen=song.id))[3]
    full.set_feedback(disliked, -1)
    assert disliked not in listed(open_page(chosen=song.id))


def test_queue_survives_another_session_of_tab(full):
    app = open_page(chosen=full.songs()[5].id)
    assert {"listen", "search_feedback"} <= {key.name for key in persistent_keys()}
    assert app.session_state["listen"].seed.endswith(f":{full.songs()[5].id}")
