"""Explore and Search by example without a browser: clicks, outlines, text and filters."""

import json

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.search.query import Examples, find_similar, find_similar_artists
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library, Song
from musicsim.ui.base.frame import PAGES, SHELL
from musicsim.ui.components import song_finder, song_map
from musicsim.ui.explore import selection
from musicsim.ui.search import form
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

    monkeypatch.setattr(song_map, "song_map", stand_in)
    for module in (song_finder, form):
        monkeypatch.setattr(module, "find_song", find)


def open_page(name: str = "explore", **session: object) -> AppTest:
    app = AppTest.from_file(SHELL, default_timeout=PATIENCE_S)
    for key, value in session.items():
        app.session_state[key] = value
    app.run()
    app = app.switch_page(PAGES[name]).run() if name != "explore" else app
    assert not app.exception
    return app


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def headings(app: AppTest) -> list[str]:
    return [s.value for s in app.subheader]


def shown_on_map(app: AppTest, key: str = "explore_map") -> str:
    return next(c.value for c in app.caption if c.value.startswith(f"{key}:"))


def played(app: AppTest) -> list[int]:
    """Return the songs of the last command to the player."""
    return [t["song_id"] for t in app.session_state["player.link"].commands[-1].payload["tracks"]]


def listed(app: AppTest) -> list[int]:
    (rows,) = [
        json.loads(c.proto.json)["rows"]
        for c in app.get("bidi_component")
        if c.proto.component_name.endswith("song_list")
    ]
    return [row["song_id"] for row in rows]


def of_artist(library: Library, artist: str) -> list[Song]:
    return [song for song in library.songs() if song.artist == artist]


def test_click_chooses_and_plays_song(full):
    song = full.songs()[5]
    app = press(open_page(), f"explore_map click {song.id}")
    assert song.title in headings(app)
    assert played(app) == [song.id]
    neighbours = listed(app)
    assert song.id not in neighbours
    assert shown_on_map(app) == f"explore_map: {song.id} {sorted(neighbours)}"


def test_similar_artist_plays_songs_nearest_to_chosen_song(full):
    song = full.songs()[5]
    app = press(open_page(), f"explore_map click {song.id}")
    app.session_state["explore_artists"] = True
    app.run()
    artist, *others = find_similar_artists(take_snapshot(full), song.id, 5)
    assert len(others) == 1, "the library has three artists"
    assert artist.name in app.button(key="similar_artist_0").label
    press(app, "similar_artist_0")
    assert played(app) == [hit.song.id for hit in artist.entries]


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


def test_title_is_chosen_and_artist_is_marked(full):
    song = of_artist(full, "Artist clicks")[1]
    app = open_page(searched="clicks")
    assert [b.label for b in app.button if b.key.startswith("explore_find artist")] == ["Artist clicks"]
    app = press(app, "explore_find artist Artist clicks")
    assert headings(app)[0] == "4 songs marked"
    app = press(app, f"explore_find song {song.id}")
    assert headings(app)[0] == song.title
    assert f": {song.id} " in shown_on_map(app)


def test_search_by_song(full):
    song = full.songs()[7]
    app = press(open_page("search", searched=song.title), f"search_song song {song.id}")
    assert "6 most similar songs" in headings(app)
    assert shown_on_map(app, "search_map") == f"search_map: {song.id} {sorted(listed(app))}"


def pills(app: AppTest, key: str) -> list[str]:
    return list(app.button_group(key=key).options)


def test_examples_are_added_and_removed_by_click(full):
    noise, tones = (of_artist(full, f"Artist {kind}") for kind in ("noise", "tones"))
    app = open_page("search", chosen=tones[0].id, searched=noise[0].title, search_more=True)
    alone = listed(app)
    app = press(app, f"search_add song {noise[0].id}")
    assert pills(app, "search_like") == [f"{noise[0].label} ✕"]
    both = listed(app)
    assert noise[0].id not in both
    expected = find_similar(take_snapshot(full), Examples((tones[0].id, noise[0].id)), 10)
    assert both == [hit.song.id for hit in expected]
    app.button_group(key="search_like").set_value(0).run()
    assert listed(app) == alone
    app.button_group(key="search_sign").set_value(-1).run()
    app = press(app, f"search_add song {noise[0].id}")
    assert pills(app, "search_unlike") == [f"{noise[0].label} ✕"]
    assert noise[0].id not in listed(app)
    full.files.mark(missing=[noise[0].path], back=[])
    app.run()
    assert not app.exception
    assert "search_unlike" not in {group.key for group in app.get("button_group")}, "it has left the library"
    app.session_state["chosen"] = noise[1].id
    app.run()
    assert "search_unlike" not in {group.key for group in app.get("button_group")}, "another search"


def test_search_by_artist_uses_all_their_songs(full):
    noise = of_artist(full, "Artist noise")
    app = press(open_page("search", searched="noise"), "search_song artist Artist noise")
    searched = {f"{full.song(app.session_state['chosen']).label} ✕", *pills(app, "search_like")}
    assert searched == {f"{song.label} ✕" for song in noise}
    assert not {song.id for song in noise} & set(listed(app))


def test_words_search_alone_and_narrow_other_search(full):
    noise = of_artist(full, "Artist noise")
    app = open_page("search", searched="genre noise xyzzy")
    app = press(app, "search_song words genre noise")
    assert headings(app)[0] == "2 songs that match"
    assert len(listed(app)) == 2, "two of an artist"
    assert set(listed(app)) < {song.id for song in noise}
    app.session_state["search_words"] = "genre noise 1980 xyzzy"
    app.run()
    assert pills(app, "search_parts") == ["“Genre noise” ✕", "1980 ✕"]
    assert any("“xyzzy”" in c.value for c in app.caption)
    assert listed(app) == [noise[0].id]
    app.button_group(key="search_parts").set_value(1).run()
    assert app.text_input(key="search_words").value == "genre noise xyzzy"
    app.session_state["chosen"] = noise[0].id
    assert set(listed(app.run())) < {song.id for song in noise[1:]}


def test_search_from_lasso_uses_marked_songs_as_examples(full):
    noise = of_artist(full, "Artist noise")
    app = press(open_page(), "explore_map lasso Artist noise")
    app.button(key="selection_search").click().run()
    assert not app.exception
    app = app.switch_page(PAGES["search"]).run()
    assert app.session_state["chosen"] == noise[0].id
    assert pills(app, "search_like") == [f"{song.label} ✕" for song in noise[1:]]


def test_filters_offer_values_of_library(full):
    app = open_page("search", chosen=full.songs()[0].id)
    assert not app.multiselect, "nothing is sent before one looks"
    app.session_state["search_filters"] = True
    app.run()
    assert app.multiselect(key="search_artists").options == ["Artist clicks", "Artist noise", "Artist tones"]
    assert app.slider[0].value == (1970, 1993)
    app.multiselect(key="search_genres").select("Genre noise").run()
    assert set(listed(app)) <= {song.id for song in of_artist(full, "Artist noise")}
    app.slider[0].set_value((1980, 1980)).run()
    of_1980 = [song.id for song in of_artist(full, "Artist noise") if song.year == 1980]
    assert listed(app) == of_1980
    app.session_state["search_filters"] = False
    app.run()
    assert (listed(app), list(app.multiselect)) == (of_1980, []), "they hold where they are not shown"


def test_no_names_are_sent_before_typing(full, monkeypatch):
    monkeypatch.setattr(song_finder, "FEW", 0)
    app = open_page("search", chosen=full.songs()[0].id, search_filters=True)
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
    assert len(listed(app)) == 6, "nothing is filtered"


def test_prefix_matches_come_first():
    names = ["Blue Note", "note", "The Notes", "Notebook", "Other"]
    found = [match.value for match in song_finder.name_matches(names, "NOTE")]
    assert found == ["Notebook", "note", "Blue Note", "The Notes"]
    assert len(song_finder.name_matches([f"note {n}" for n in range(100)], "note")) == 20
