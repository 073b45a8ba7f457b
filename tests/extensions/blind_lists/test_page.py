"""The blind comparison as a page shows it: no names before the answer, the tally after it."""

import json

from streamlit.testing.v1 import AppTest

from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extensions.blind_lists.blind_test import KIND
from tests.pages.actions import labels, said
from tests.sounds import write_song

NATIVE = "Sound"
SHUFFLE = "shuffle"


def script() -> None:
    from musicsim.extensions.blind_lists.page import draw
    from musicsim.ui.base.openers import snapshot
    from musicsim.ui.components import player

    player.mount(on_event=lambda event: None, thumbs={})
    draw(snapshot(), busy=False)


def open_view() -> AppTest:
    app = AppTest.from_function(script, default_timeout=60).run()
    assert not app.exception
    return app


def press(app: AppTest, label: str) -> AppTest:
    app.button[labels(app).index(label)].click().run()
    assert not app.exception
    return app


def lists(app: AppTest) -> list[list[dict]]:
    """Rows of the song lists, as they are sent to the browser."""
    found = [c.proto for c in app.get("bidi_component") if c.proto.component_name.endswith("song_list")]
    return [json.loads(proto.json)["rows"] for proto in found]


def test_fewer_than_two_songs_have_words(empty, tmp_path):
    assert "at least two songs" in said(open_view())
    empty.add(write_song(tmp_path / "one.flac", title="Only one"))
    refresh(empty)
    app = open_view()
    assert "at least two songs" in said(app)
    assert not app.button


def test_with_one_model_the_shuffle_is_what_it_is_compared_with(full):
    app = open_view()
    assert [box.value.name for box in app.selectbox[:2]] == [NATIVE, SHUFFLE]
    assert labels(app) == ["Generate two playlists"]
    assert "No answers yet." in said(app)


def test_nobody_says_whose_list_it_is_before_the_answer(full):
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


def test_an_answer_is_kept_names_are_told_and_the_next_pair_is_one_click_away(full):
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
    assert f"1 of 1 for “{answer.options[1]}”; by chance alone this happens in 100 % of cases." in said(app)
    press(app, "Next two lists")
    assert "You chose" not in said(app)
    assert lists(app) != before
    press(app, "No difference")
    assert [a.chosen for a in full.judgments.all(KIND)] == [1, None]
    assert "You heard no difference." in said(app)


def test_a_step_is_explained_after_the_answer_and_not_before(full):
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


def test_answers_are_taken_back_from_the_last_one_on(full):
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


def test_the_first_song_and_the_length_are_those_that_are_asked_for(full):
    song = full.songs()[3]
    app = open_view()
    app.session_state["blind_song"] = song.id
    app.number_input(key="blind_length").set_value(3)
    press(app, "Generate two playlists")
    assert [[rows[0]["song_id"], len(rows)] for rows in lists(app)] == [[song.id, 3]] * 2


def test_other_contenders_do_not_get_the_answer_about_these(full):
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


def test_lists_that_are_equal_can_only_be_said_to_be(empty, tmp_path):
    for n, kind in enumerate(("tones", "noise")):
        empty.add(write_song(tmp_path / f"{kind}.flac", kind, title=kind, artist=f"Artist {n}"))
    refresh(empty)
    app = press(open_view(), "Generate two playlists")
    assert "Both keep producing the same list" in said(app)
    assert [b.disabled for b in app.button] == [True, False, True, False]
