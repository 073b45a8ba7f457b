"""The Compare page without a browser: what is asked of whom, what is kept, taken back, told, sent out and in."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.questions import Question, Rate, Standing
from musicsim.library.db import schema
from musicsim.library.importing.answers import export_answers
from musicsim.library.stores.judgments import Judgment
from musicsim.ui.base.frame import PAGES
from musicsim.ui.compare import answers as compare_answers
from musicsim.ui.compare import session as compare_session
from musicsim.ui.compare import view as compare_view
from musicsim.ui.compare.cards import show_cards
from tests.pages.actions import open_page
from tests.sounds import write_song

NOTHING = Rate(None, 0, 0.0, 1.0, None)


@pytest.fixture(autouse=True)
def card_buttons(monkeypatch):
    """A button for all that can be done with the cards: AppTest cannot click into the component."""

    def cards(now, asked, *, turn, on_action, **rest):
        show_cards(now, asked, turn=turn, on_action=on_action, **rest)
        for place in range(len(asked.song_ids)):
            st.button(f"choose {place}", on_click=on_action, args=("choose", turn, place))
        for kind in ("unsure", "skip", "undo", "heard", "nonsense"):
            st.button(kind, on_click=on_action, args=(kind, turn, None))
        st.button("too late", on_click=on_action, args=("choose", turn - 1, 1))
        st.button("nowhere", on_click=on_action, args=("choose", turn, 4))

    monkeypatch.setattr(compare_view, "show_cards", cards)


class Survey:
    """Asks in the order of the numbers, each person each set of songs once; notes what it is told."""

    def __init__(self) -> None:
        self.told: list[list[Judgment]] = []

    def __call__(
        self, snapshot: Snapshot, answers: Sequence[Judgment], *, listener: str, form: str, n_songs: int,
        rng: np.random.Generator,
    ) -> Question:  # fmt: skip
        self.told.append(list(answers))
        known = {a.song_ids for a in answers if (a.listener, a.kind) == (listener, form)}
        ids = next(i for i in combinations(sorted(snapshot.row_ids.tolist()), n_songs) if i not in known)
        return Question(form, ids, is_random=ids[-1] % 2 == 0, is_repeat=False)


@pytest.fixture
def survey(monkeypatch) -> Survey:
    made = Survey()
    monkeypatch.setattr(compare_session, "next_question", made)
    monkeypatch.setattr(compare_session, "foreseen", lambda now, of, chosen: chosen == 1)
    return made


def compare() -> AppTest:
    app = open_page("compare")
    assert not app.exception
    return app


def press(app: AppTest, *labels: str) -> AppTest:
    for label in labels:
        next(button for button in app.button if button.label == label).click().run()
        assert not app.exception
    return app


def choose(app: AppTest, key: str, value: object) -> AppTest:
    """Set a choice above the question."""
    app.session_state[key] = value
    app.run()
    assert not app.exception
    return app


def type_name(app: AppTest, name: str) -> AppTest:
    """Say who listens; AppTest refuses what is no option, and the browser does not."""
    box = app.selectbox(key="compare_listener")
    box.options.append(name)
    box.set_value(name).run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.success)
    return "\n".join(element.value.replace("\\", "") for kind in kinds for element in kind)


def sent(app: AppTest) -> dict:
    """What the browser is told of the question."""
    found = [c.proto for c in app.get("bidi_component") if c.proto.component_name.endswith("musicsim_compare")]
    (proto,) = found
    return json.loads(proto.json)


def asked(app: AppTest) -> tuple[int, ...]:
    return app.session_state["compare_asked"].question.song_ids


# --- states ---------------------------------------------------------------------------------------


def test_an_empty_library_has_a_next_step(empty):
    app = compare()
    assert "No songs yet" in said(app)
    assert any("demo" in button.label for button in app.button)


def test_fewer_songs_than_a_question_has_words(empty, tmp_path):
    empty.add(write_song(tmp_path / "one.flac", title="One", artist="A"))
    refresh(empty)
    assert "A question needs 3 songs, but only one song can be compared." in said(compare())
    for n, kind in enumerate(("noise", "clicks")):
        empty.add(write_song(tmp_path / f"{kind}.flac", kind, title=kind, artist=f"B{n}"))
    refresh(empty)
    app = compare()
    assert len(sent(app)["songs"]) == 3
    choose(app, "compare_n_songs", 4)
    assert "A question needs 4 songs, but only 3 songs can be compared." in said(app)
    shown = [element.key for element in app.get("bidi_component")]
    assert shown == ["musicsim_reload", "musicsim-player"], "nothing to choose from"


def test_a_song_whose_file_has_gone_cannot_be_heard_and_the_others_can(full, survey):
    app = compare()
    (gone,) = full.songs([asked(app)[1]])
    where = gone.path.with_suffix(".elsewhere")
    gone.path.rename(where)
    try:
        assert [song["track"] is None for song in sent(app.run())["songs"]] == [False, True, False]
    finally:
        where.rename(gone.path)


# --- the question and its answer ------------------------------------------------------------------


def test_songs_have_no_names_before_the_answer_and_names_after_it(full, survey):
    app = compare()
    data = sent(app)
    assert data["question"] == "Which one does not belong?"
    assert [song["mark"] for song in data["songs"]] == ["1", "2", "3"]
    assert [song["track"]["title"] for song in data["songs"]] == ["Song 1", "Song 2", "Song 3"]
    assert "Artist" not in json.dumps(data)
    first = [song.label for song in full.songs(list(asked(app)))]
    press(app, "choose 2")
    data = sent(app)
    assert data["last"]["said"] == "You said: 3 does not belong."
    assert [song["name"] for song in data["last"]["songs"]] == first
    assert [song["is_chosen"] for song in data["last"]["songs"]] == [False, False, True]
    assert not any(song["title"] for song in data["songs"])
    choose(app, "compare_names", True)
    titles = [song.title for song in full.songs(list(asked(app)))]
    assert [song["title"] for song in sent(app)["songs"]] == titles
    assert [song["track"]["title"] for song in sent(app)["songs"]] == titles


def test_an_answer_is_kept_at_once_with_all_that_is_known_of_it(full, survey):
    app = compare()
    ids = asked(app)
    press(app, "choose 1")
    (answer,) = full.judgments.answers()
    assert (answer.listener, answer.kind, answer.song_ids, answer.chosen) == ("me", "odd", ids, 1)
    assert (answer.is_random, answer.foreseen, answer.model) == (ids[-1] % 2 == 0, True, "Sound")
    assert asked(app) != ids
    press(app, "choose 0", "unsure")
    assert [a.chosen for a in full.judgments.answers()] == [1, 0, None]
    assert [a.foreseen for a in full.judgments.answers()] == [True, False, None]
    assert "**me**: 3 of 25 answers, 1 of them unsure" in said_progress(app)


def said_progress(app: AppTest) -> str:
    return "\n".join(element.proto.text for element in app.get("progress"))


def test_a_question_that_is_skipped_leaves_nothing_and_does_not_come_back(full, survey):
    app = compare()
    seen = [asked(app)]
    for _ in range(4):
        press(app, "skip")
        seen.append(asked(app))
    assert len(set(seen)) == 5
    assert full.judgments.answers() == []
    press(app, "choose 1", "choose 1")
    assert asked(app) not in seen


def test_the_last_answers_are_taken_back_and_asked_again(full, survey):
    app = compare()
    first = asked(app)
    press(app, "undo")
    assert asked(app) == first, "nothing to take back"
    press(app, "choose 0")
    second = asked(app)
    press(app, "unsure")
    third = asked(app)
    press(app, "undo")
    assert [a.chosen for a in full.judgments.answers()] == [0]
    assert asked(app) == second
    press(app, "undo")
    assert full.judgments.answers() == []
    assert asked(app) == first
    assert sent(app)["last"] is None
    press(app, "choose 2")
    assert asked(app) == second, "the one that stood there comes next"
    press(app, "choose 2")
    assert asked(app) == third
    assert [a.song_ids for a in full.judgments.answers()] == [first, second]


def test_taking_back_goes_to_the_kind_of_question_and_the_person_it_was(full, survey):
    app = press(compare(), "choose 0")
    choose(app, "compare_form", "like")
    choose(app, "compare_n_songs", 4)
    type_name(app, "Ann")
    assert sent(app)["form"] == "like"
    press(app, "undo")
    assert (sent(app)["form"], len(sent(app)["songs"])) == ("odd", 3)
    assert app.session_state["compare_listener"] == "me"
    assert full.judgments.answers() == []
    press(app, "choose 0")
    assert [(a.listener, a.kind, len(a.song_ids)) for a in full.judgments.answers()] == [("me", "odd", 3)]


def test_what_comes_too_late_or_makes_no_sense_changes_nothing(full, survey):
    app = press(compare(), "choose 0")
    ids = asked(app)
    press(app, "too late", "nowhere", "nonsense")
    assert len(full.judgments.answers()) == 1
    assert asked(app) == ids


def test_of_more_like_the_first_the_first_cannot_be_chosen(full, survey):
    app = compare()
    choose(app, "compare_form", "like")
    choose(app, "compare_n_songs", 4)
    data = sent(app)
    assert data["question"] == "Which is more like the first?"
    assert [song["mark"] for song in data["songs"]] == ["First", "1", "2", "3"]
    assert [song["track"]["title"] for song in data["songs"]] == ["The first song", "Song 1", "Song 2", "Song 3"]
    press(app, "choose 0")
    assert full.judgments.answers() == []
    press(app, "choose 3")
    (answer,) = full.judgments.answers()
    assert (answer.kind, len(answer.song_ids), answer.chosen) == ("like", 4, 3)
    assert sent(app)["last"]["said"] == "You said: 3 is more like the first."


def ahead(app: AppTest) -> tuple[int, ...]:
    """The question after the one that is asked, once it is worked out."""
    return app.session_state["compare_ahead"].question.result().song_ids


def test_a_question_stays_until_it_is_answered_and_the_next_one_is_worked_out_meanwhile(full, survey):
    app = compare()
    first, second = asked(app), ahead(app)
    assert [a.song_ids for a in survey.told[1]] == [first], "as if this one were answered"
    choose(app, "compare_names", True)
    app.run()
    assert (asked(app), ahead(app), len(survey.told)) == (first, second, 2), "nothing is worked out twice"
    press(app, "choose 1")
    assert asked(app) == second
    ahead(app)
    assert [a.song_ids for a in survey.told[2]] == [first, second]
    choose(app, "compare_form", "like")
    assert sent(app)["form"] == "like", "what was made for another kind of question is of no use"
    ahead(app)
    assert len(survey.told) == 5
    type_name(app, "Ann")
    ahead(app)
    assert len(survey.told) == 7, "another person is asked something of their own"


def test_a_question_worked_out_before_the_library_changed_is_not_asked(full, survey):
    app = compare()
    old = ahead(app)
    with full.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == old[-1]))
    press(app, "choose 1")
    assert old[-1] not in asked(app)


def test_a_question_about_a_song_that_has_gone_is_asked_no_more(full, survey):
    app = compare()
    gone = asked(app)[0]
    with full.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == gone))
    press(app, "choose 1")
    assert full.judgments.answers() == []
    assert gone not in asked(app)


def test_the_player_is_told_whose_songs_it_holds(full, survey):
    app = compare()
    assert not sent(app)["is_queue_ours"]
    press(app, "heard")
    assert sent(app)["is_queue_ours"]


# --- people ---------------------------------------------------------------------------------------


def test_the_one_who_answered_before_is_taken_to_sit_here_and_of_several_nobody(full, survey):
    ids = [song.id for song in full.songs()]
    full.judgments.add("Ann", "odd", ids[:3], 0)
    assert compare().session_state["compare_listener"] == "Ann"
    full.judgments.add("Bob", "odd", ids[:3], 1)
    app = compare()
    assert "Enter the listener's name" in said(app)
    assert not [button for button in app.button if button.label == "choose 0"]
    type_name(app, "  Cid   of Ithaca ")
    press(app, "choose 0")
    assert full.judgments.answers("Cid of Ithaca")[0].chosen == 0
    assert "3 people gave 3 answers." in said(app)


def test_answers_get_another_name_or_are_forgotten(full, survey):
    app = press(compare(), "choose 0", "choose 1")
    app.text_input(key="compare_rename").set_value("Dora")
    press(app, "Rename")
    assert full.judgments.listeners() == ["Dora"]
    assert app.session_state["compare_listener"] == "Dora"
    assert "Delete 2 answers of **Dora**?" in said(app)
    press(app, "Delete them")
    assert full.judgments.answers() == []
    assert app.button(key="compare_forget").disabled


def test_a_new_name_reaches_what_the_session_knows(full, survey):
    """An answer that is taken back is asked of the new name; what was skipped under the old one stays skipped."""
    app = press(compare(), "choose 0")
    skipped = asked(app)
    press(app, "skip")
    second = asked(app)
    press(app, "choose 1")
    waiting = asked(app)
    app.text_input(key="compare_rename").set_value("Dora")
    press(app, "Rename")
    assert asked(app) == waiting, "the question that waits is still theirs"
    press(app, "undo")
    assert app.session_state["compare_listener"] == "Dora"
    assert asked(app) == second
    press(app, "choose 2")
    assert asked(app) == waiting, "put off under the old name"
    assert [(a.listener, a.chosen) for a in full.judgments.answers()] == [("Dora", 0), ("Dora", 2)]
    press(app, "choose 0")
    assert skipped not in {asked(app), ahead(app)}


def test_a_new_name_of_one_library_is_none_of_another(full, survey, tmp_path):
    app = press(compare(), "choose 0", "skip")
    elsewhere = [replace(of, library=tmp_path) for of in app.session_state["compare_skipped"]]
    app.session_state["compare_skipped"] = elsewhere
    app.text_input(key="compare_rename").set_value("Dora")
    press(app, "Rename")
    assert app.session_state["compare_skipped"] == elsewhere
    assert app.session_state["compare_given"][0].asked.listener == "Dora"


# --- what they are worth --------------------------------------------------------------------------


def test_the_worth_of_answers_is_told_in_plain_words(full, survey, monkeypatch):
    ids = [song.id for song in full.songs()]
    for name in ("me", "Ann"):
        full.judgments.add(name, "odd", ids[:3], 0)
    rate = Rate(0.7, 10, 0.397, 0.892, 1 / 3)
    mine = Standing(27, 2, 1, rate, NOTHING, NOTHING)
    everybody = Standing(30, 3, 2, rate, Rate(0.5, 4, 0.15, 0.85, 1 / 3), Rate(0.9, 20, 0.7, 0.97, 1 / 3))
    monkeypatch.setattr(compare_answers, "standing", lambda answers, listener=None: mine if listener else everybody)
    app = compare()
    type_name(app, "me")
    told = said(app)
    assert "27 of 50 answers, 2 of them unsure" in said_progress(app)
    assert (
        "repeated questions got the same answer in 7 of 10 (**70%**, 95% interval 40% to 89%; guessing: 33%)." in told
    )
    assert "one question in five is random; none of those" in told
    assert "2 people gave 30 answers." in told
    assert "agreed in 2 of 4 (**50%**" in told
    assert "gave the same answer in 18 of 20 (**90%**" in told


def test_the_worth_of_answers_is_of_those_that_are_there_now(full, survey):
    """Others of one person may take the place of as many, before the last, which is of somebody else."""
    ids = [song.id for song in full.songs()]

    def swap(chosen):
        full.judgments.forget_listener("Ann")
        with full.write() as connection:
            for at, place in enumerate(chosen):
                connection.execute(
                    schema.judgments.insert().values(
                        created_at=at, listener="Ann", kind="odd", chosen=place, context={},
                        **{song.name: i for song, i in zip(schema.JUDGED_SONGS, ids[:3], strict=False)},
                    )
                )  # fmt: skip

    full.judgments.add("Bob", "odd", ids[:3], 1)
    swap([0, 0, 0])
    app = type_name(compare(), "Ann")
    assert "repeated questions got the same answer in 2 of 2" in said(app)
    swap([0, 1, 0])
    assert "repeated questions got the same answer in 0 of 2" in said(app.run())
    full.judgments.rename("Ann", "Cid")
    full.judgments.rename("Bob", "Ann")
    full.judgments.rename("Cid", "Bob")
    assert "none has been answered twice" in said(app.run()), "the two have changed names"


def test_training_on_the_answers_is_one_click_away(full, survey, monkeypatch):
    app = compare()
    assert app.button(key="compare_train").disabled
    press(app, "unsure")
    assert app.button(key="compare_train").disabled, "nobody has said anything yet"
    press(app, "choose 1")
    went = []
    monkeypatch.setattr(st, "switch_page", went.append)
    press(app, "Train on these answers")
    assert went == [PAGES["train"]]
    assert app.session_state["train_kind"] == "answers"


# --- out and in -----------------------------------------------------------------------------------


def upload(app: AppTest, data: bytes, name: str = "answers.csv") -> AppTest:
    app.get("file_uploader")[0].set_value((name, data, "text/csv")).run()
    return press(app, "Import")


def test_answers_go_out_and_come_in_once(full, survey):
    app = press(compare(), "choose 0", "unsure")
    text = io.BytesIO()
    assert export_answers(full, text) == 2
    kept = [(a.song_ids, a.chosen) for a in full.judgments.answers()]
    upload(app, text.getvalue())
    assert "2 answers read: 0 added, 2 already here." in said(app)
    press(app, "Delete them")
    upload(app, text.getvalue())
    assert "2 answers read: 2 added." in said(app)
    assert [(a.song_ids, a.chosen) for a in full.judgments.answers()] == kept


def test_a_file_that_holds_no_answers_is_a_sentence(full, survey):
    app = upload(compare(), b"\x00\xff\xfe nothing of the kind")
    assert not app.exception
    assert full.judgments.answers() == []
    assert [*app.error, *app.warning], "says what is wrong"


def test_answers_about_songs_from_elsewhere_are_counted(full, survey):
    app = upload(compare(), b"song1,song2,song3,picked_song\na.mp3,b.mp3,c.mp3,b.mp3\n")
    assert "1 answer read: 0 added, 1 about songs not in this library." in said(app)


def test_choices_and_the_waiting_question_outlive_a_look_at_another_page(full, survey):
    ids = [song.id for song in full.songs()]
    for name in ("Ann", "Bob"):
        full.judgments.add(name, "odd", ids[:3], 0)
    app = type_name(compare(), "Bob")
    choose(app, "compare_form", "like")
    choose(app, "compare_names", True)
    waiting = asked(app)
    app.switch_page(PAGES["library"]).run()
    app.switch_page(PAGES["compare"]).run()
    assert not app.exception
    assert app.selectbox(key="compare_listener").value == "Bob"
    assert app.toggle(key="compare_names").value
    assert sent(app)["form"] == "like"
    assert asked(app) == waiting


# --- with the survey itself -----------------------------------------------------------------------


def test_a_sitting_of_twelve_questions(full):
    app = compare()
    for n in range(12):
        data = sent(app)
        assert len({song["track"]["song_id"] for song in data["songs"]}) == 3
        press(app, f"choose {n % 3}")
    answers = full.judgments.answers()
    assert [a.chosen for a in answers] == [n % 3 for n in range(12)]
    assert all(a.foreseen is not None for a in answers)
    n_random = sum(a.is_random for a in answers)
    assert f"of {n_random} (" in said(app) if n_random else "drawn by chance; none" in said(app)
