"""Tests of the blind comparison on its page: no names before the answer, the tally after it."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extensions.blind_lists.blind_test import KIND
from tests.pages.actions import labels, said
from tests.sounds import write_song
from tests.waiting import PATIENCE_S

NATIVE = "Sound"
SHUFFLE = "shuffle"


def script() -> None:
    from musicsim.extensions.blind_lists.page import draw
    from musicsim.ui.base.openers import snapshot
    from musicsim.ui.components import player

    player.mount(on_event=lambda event: None, thumbs={})
    draw(snapshot(), busy=False)


def open_view() -> AppTest:
    app = AppTest.from_function(script, default_timeout=PATIENCE_S).run()
    assert not app.exception
    return app


def press(app: AppTest, label: str) -> AppTest:
    app.button[labels(app).index(label)].click().run()
    assert not app.exception
    return app


def lists(app: AppTest) -> list[list[dict]]:
    """Return the rows of the song lists, as sent to the browser."""
    found = [c.proto for c in app.get("bidi_component") if c.proto.component_name.endswith("song_list")]
    return [json.loads(proto.json)["rows"] for proto in found]


@pytest.mark.long
def test_too_few_songs_show_explanation(empty, tmp_path):
    assert "at least two songs" in said(open_view())
    empty.add(write_song(tmp_path / "one.flac", title="Only one"))
    refresh(empty)
    app = open_view()
    assert "at least two songs" in said(app)
    assert not app.button


def test_single_model_is_compared_with_shuffle(full):
    app = open_view()
    assert [box.value.name for box in app.selectbox[:2]] == [NATIVE, SHUFFLE]
    assert labels(app) == ["Generate two playlists"]
    assert "No answers yet." in said(app)


def test_model_names_are_hidden_before_answer(full):
    app = press(open_view(), "Generate two playlists")
    assert [b.label for b in app.button] == [
        "List 1 is better",
        "No difference",
        "List 2 is better",
        "Generate two others",
    ]
    assert [m.value for m in app.markdown] == ["**List 1**", "**List 2**"]
    assert not {NATIVE, SHUFFLE, "anywhere"} & set(said(app).split())
    assert {row["link"] for rows in lists(app) for row in rows} == {None}
    assert full.judgments.all(KIND) == []
    first, second = lists(app)
    assert len(first) == len(second) == 8
    assert first[0]["song_id"] == second[0]["song_id"]


def test_answer_is_saved_and_reveals_names(full):
    app = press(open_view(), "Generate two playlists")
    before = lists(app)
    press(app, "List 2 is better")
    (answer,) = full.judgments.all(KIND)
    assert answer.chosen == 1
    assert answer.context["songs"] == [[row["song_id"] for row in rows] for rows in before]
    assert f"You chose list 2. List 1 was made by **{answer.options[0]}**" in said(app)
    assert f"**List 2** · {answer.options[1]}" in said(app)
    shuffled = lists(app)[[answer.options[0], answer.options[1]].index(SHUFFLE)]
    assert [row["link"] for row in shuffled] == [None, *["random jump"] * 7]
    assert f"1 of 1 for “{answer.options[1]}”; by chance alone this happens in 100% of cases." in said(app)
    press(app, "Next two lists")
    assert "You chose" not in said(app)
    assert lists(app) != before
    press(app, "No difference")
    assert [a.chosen for a in full.judgments.all(KIND)] == [1, None]
    assert "You heard no difference." in said(app)


def test_step_is_explained_only_after_answer(full):
    app = press(open_view(), "Generate two playlists")
    app.session_state["blind_why"] = (1, 2)
    app.run()
    assert "From **" not in said(app)
    press(app, "No difference")
    app.session_state["blind_why"] = (1, 2)
    app.run()
    assert not app.exception
    here, there = (full.songs([row["song_id"]])[0].title for row in lists(app)[0][1:3])
    assert f"From **{here}** to **{there}**" in said(app)
    app.run()
    assert "From **" not in said(app), "asked for once"


def test_answers_are_undone_in_reverse_order(full):
    app = press(open_view(), "Generate two playlists")
    press(app, "List 1 is better")
    press(app, "Next two lists")
    press(app, "List 2 is better")
    press(app, "Undo last answer")
    assert [a.chosen for a in full.judgments.all(KIND)] == [0]
    assert "Generate two playlists" in labels(app), "the names have been seen: these lists are not asked about again"
    press(app, "Generate two playlists")
    press(app, "Undo last answer")
    assert full.judgments.all(KIND) == []
    assert "List 1 is better" in labels(app), "lists that nobody has answered stay"
    assert "Undo last answer" not in labels(app)


def test_first_song_and_length_follow_request(full):
    song = full.songs()[3]
    app = open_view()
    app.session_state["blind_song"] = song.id
    app.number_input(key="blind_length").set_value(3)
    press(app, "Generate two playlists")
    assert [[rows[0]["song_id"], len(rows)] for rows in lists(app)] == [[song.id, 3]] * 2


def test_changing_contenders_discards_current_pair(full):
    add_representation(full, RepresentationSettings("histogram"), "plain counts", lambda *_: None)
    app = open_view()
    assert [box.value.name for box in app.selectbox[:2]] == [NATIVE, "plain counts"]
    press(app, "Generate two playlists")
    second = app.selectbox(key="blind_second")
    app.selectbox(key="blind_second").select_index(len(second.options) - 1).run()
    assert not app.exception
    assert labels(app) == ["Generate two playlists"]
    first = app.selectbox(key="blind_first")
    app.selectbox(key="blind_first").select_index(len(first.options) - 1).run()
    assert [box.value.name for box in app.selectbox[:2]] == [SHUFFLE, NATIVE]
    press(app, "Generate two playlists")
    assert len(lists(app)) == 2


@pytest.mark.long
def test_equal_playlists_allow_only_no_difference(empty, tmp_path):
    for n, kind in enumerate(("tones", "noise")):
        empty.add(write_song(tmp_path / f"{kind}.flac", kind, title=kind, artist=f"Artist {n}"))
    refresh(empty)
    app = press(open_view(), "Generate two playlists")
    assert "Both keep producing the same list" in said(app)
    assert [b.disabled for b in app.button] == [True, False, True, False]
