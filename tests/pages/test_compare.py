"""The section Compare without a browser: questions, answers, undo, people, the survey, export and import."""

import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from musicsim.explorer import jobs
from musicsim.explorer.refresh.fitting import new_record, publish
from musicsim.explorer.refresh.learned_model import LEARNED_KIND
from musicsim.explorer.refresh.placing import follow_owner
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.survey.questions import AnswerSummary, Criterion, Question, Rate
from musicsim.library.db import schema
from musicsim.library.importing.answers import export_answers
from musicsim.library.stores.judgments import Judgment
from musicsim.ui.base.frame import PAGES
from musicsim.ui.compare import answers as compare_answers
from musicsim.ui.compare import session as compare_session
from musicsim.ui.compare import view as compare_view
from musicsim.ui.components.trials.cards import act, show_cards
from musicsim.wording import count
from tests.learning import hush
from tests.pages.actions import open_page, said
from tests.sounds import write_song

NOTHING = Rate(None, 0, 0.0, 1.0, None)


@pytest.fixture(autouse=True)
def card_buttons(monkeypatch):
    """A button for every action of the cards: AppTest cannot click into the component."""

    def cards(session, now, asked, last, **more):
        show_cards(session, now, asked, last, **more)
        turn = session.key.get().turn
        for place in range(len(asked.question.song_ids)):
            st.button(f"choose {place}", on_click=act, args=(session, "choose", turn, place))
        for kind in ("unsure", "skip", "undo", "nonsense"):
            st.button(kind, on_click=act, args=(session, kind, turn, None))
        st.button("too late", on_click=act, args=(session, "choose", turn - 1, 1))
        st.button("nowhere", on_click=act, args=(session, "choose", turn, 4))

    monkeypatch.setattr(compare_view, "show_cards", cards)


class Survey:
    """A survey that asks in numeric order, each person each set of songs once, and records the answers it gets."""

    def __init__(self) -> None:
        self.told: list[list[Judgment]] = []

    def __call__(
        self, snapshot: Snapshot, answers: Sequence[Judgment], *, listener: str, form: str, n_songs: int,
        criterion: Criterion | None, rng: np.random.Generator,
    ) -> Question:  # fmt: skip
        self.told.append(list(answers))
        known = {a.song_ids for a in answers if (a.listener, a.kind) == (listener, form)}
        ids = next(i for i in combinations(sorted(snapshot.row_ids.tolist()), n_songs) if i not in known)
        return Question(form, ids, is_random=ids[-1] % 2 == 0, is_repeat=False, listener=listener)


@pytest.fixture
def survey(monkeypatch) -> Survey:
    made = Survey()
    monkeypatch.setattr(compare_session, "next_question", made)
    monkeypatch.setattr(compare_session, "is_predicted", lambda now, of, chosen: chosen == 1)
    return made


def compare() -> AppTest:
    app = open_page("train", "compare")
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
    """Choose the listener; AppTest refuses a new option, the browser does not."""
    box = app.selectbox(key="compare_listener")
    box.options.append(name)
    box.set_value(name).run()
    assert not app.exception
    return app


def sent(app: AppTest) -> dict:
    """Return the data of the question that the browser gets."""
    found = [c.proto for c in app.get("bidi_component") if c.proto.component_name.endswith("assets_compare")]
    (proto,) = found
    return json.loads(proto.json)


def asked(app: AppTest) -> tuple[int, ...]:
    return app.session_state["compare_asked"].current.question.song_ids


# --- states ---------------------------------------------------------------------------------------


def test_empty_library_has_next_step(empty):
    app = compare()
    assert "No songs yet" in said(app)
    assert any("demo" in button.label for button in app.button)


@pytest.mark.long
def test_too_few_songs_for_question_gives_clear_message(empty, tmp_path):
    for n, kind in enumerate(("tones", "noise", "clicks")):
        if n == 2:
            refresh(empty)
            assert "A question needs 3 songs, but only 2 songs can be compared." in said(compare())
        empty.add(write_song(tmp_path / f"{kind}.flac", kind, title=kind, artist=f"B{n}"))
    refresh(empty)
    app = compare()
    assert len(sent(app)["songs"]) == 3
    choose(app, "compare_n_songs", 4)
    assert "A question needs 4 songs, but only 3 songs can be compared." in said(app)
    shown = [element.key for element in app.get("bidi_component")]
    assert not any(key.startswith("compare") for key in shown), "nothing to choose from"


def test_song_without_file_cannot_be_played(full, own_music, survey):
    app = compare()
    (gone,) = full.songs([asked(app)[1]])
    gone.path.unlink()
    assert [song["track"] is None for song in sent(app.run())["songs"]] == [False, True, False]


# --- questions and answers ------------------------------------------------------------------------


def test_song_names_are_hidden_until_answered(full, survey):
    app = compare()
    data = sent(app)
    assert data["question"] == "Which one does not belong?"
    assert [song["mark"] for song in data["songs"]] == ["1", "2", "3"]
    assert [song["title"] for song in data["songs"]] == [None] * 3
    assert "Artist" not in json.dumps(data)
    assert not any(song.title in json.dumps(data) for song in full.songs(list(asked(app))))
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


def test_answer_is_saved_immediately_with_details(full, survey):
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


def test_skipped_question_is_not_saved_or_asked_again(full, survey):
    app = compare()
    seen = [asked(app)]
    for _ in range(4):
        press(app, "skip")
        seen.append(asked(app))
    assert len(set(seen)) == 5
    assert full.judgments.answers() == []
    press(app, "choose 1", "choose 1")
    assert asked(app) not in seen


def test_undo_removes_last_answers_and_asks_again(full, survey):
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


def test_undo_restores_question_type_and_listener(full, survey):
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


def test_late_or_invalid_events_change_nothing(full, survey):
    app = press(compare(), "choose 0")
    ids = asked(app)
    press(app, "too late", "nowhere", "nonsense")
    assert len(full.judgments.answers()) == 1
    assert asked(app) == ids


def test_first_song_cannot_be_chosen_in_like_question(full, survey):
    app = compare()
    choose(app, "compare_form", "like")
    choose(app, "compare_n_songs", 4)
    data = sent(app)
    assert data["question"] == "Which is more like the first?"
    assert [song["mark"] for song in data["songs"]] == ["First", "1", "2", "3"]
    press(app, "choose 0")
    assert full.judgments.answers() == []
    press(app, "choose 3")
    (answer,) = full.judgments.answers()
    assert (answer.kind, len(answer.song_ids), answer.chosen) == ("like", 4, 3)
    assert sent(app)["last"]["said"] == "You said: 3 is more like the first."


def ahead(app: AppTest) -> tuple[int, ...]:
    """Return the question after the current one, once it is computed."""
    return app.session_state["compare_asked"].ahead[1].result().song_ids


def test_next_question_is_computed_while_current_one_stays(full, survey):
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


def test_question_prepared_before_library_change_is_discarded(full, survey):
    app = compare()
    old = ahead(app)
    with full.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == old[-1]))
    press(app, "choose 1")
    assert old[-1] not in asked(app)


def test_question_about_deleted_song_is_replaced(full, survey):
    app = compare()
    gone = asked(app)[0]
    with full.write() as connection:
        connection.execute(schema.songs.delete().where(schema.songs.c.id == gone))
    press(app, "choose 1")
    assert full.judgments.answers() == []
    assert gone not in asked(app)


# --- people ---------------------------------------------------------------------------------------


def test_only_previous_listener_is_preselected(full, survey):
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


def test_answers_are_renamed_or_deleted(full, survey):
    app = press(compare(), "choose 0", "choose 1")
    app.text_input(key="compare_rename").set_value("Dora")
    press(app, "Rename")
    assert full.judgments.listeners() == ["Dora"]
    assert app.session_state["compare_listener"] == "Dora"
    assert "Delete 2 answers from **Dora**?" in said(app)
    press(app, "Delete answers")
    assert full.judgments.answers() == []
    assert app.button(key="compare_forget").disabled


def test_renaming_listener_updates_session(full, survey):
    """An undone answer is asked again under the new name; questions skipped under the old one stay skipped."""
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


def test_renaming_listener_does_not_affect_other_library(full, survey, tmp_path):
    app = press(compare(), "choose 0", "skip")
    state = app.session_state["compare_asked"]
    state.skipped = elsewhere = [replace(of, library=tmp_path) for of in state.skipped]
    app.text_input(key="compare_rename").set_value("Dora")
    press(app, "Rename")
    assert app.session_state["compare_asked"].skipped == elsewhere
    assert app.session_state["compare_asked"].answers[0].question.listener == "Dora"


# --- survey ---------------------------------------------------------------------------------------


def test_survey_is_described_in_plain_words(full, survey, monkeypatch):
    ids = [song.id for song in full.songs()]
    for name in ("me", "Ann"):
        full.judgments.add(name, "odd", ids[:3], 0)
    rate = Rate(0.7, 10, 0.397, 0.892, 1 / 3)
    mine = AnswerSummary(27, 2, 1, rate, NOTHING, NOTHING)
    everybody = AnswerSummary(30, 3, 2, rate, Rate(0.5, 4, 0.15, 0.85, 1 / 3), Rate(0.9, 20, 0.7, 0.97, 1 / 3))
    monkeypatch.setattr(
        compare_answers, "summarize_answers", lambda answers, listener=None: mine if listener else everybody
    )
    app = compare()
    type_name(app, "me")
    told = said(app)
    assert "27 of 50 answers, 2 of them unsure" in said_progress(app)
    assert (
        "repeated questions got the same answer in 7 of 10 cases (70%, 95% interval 40% to 89%; guessing: 33%)." in told
    )
    assert "not known until a random question" in told
    assert "2 people gave 30 answers." in told
    assert "agreed in 2 of 4 cases (50%" in told
    assert "gave the same answer in 18 of 20 cases (90%" in told


def test_survey_follows_current_answers(full, survey):
    """Other answers of one person may replace as many earlier ones, before the last, which is another person's."""
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
    assert "not known until a repeated question" in said(app.run()), "the two have changed names"


def test_training_is_offered_after_25_answers(full, survey, monkeypatch):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    ids = [song.id for song in full.songs()]
    for n in range(24):
        full.judgments.add("me", "odd", [ids[n % 12], ids[(n + 1) % 12], ids[(n + 5) % 12]], n % 3)
    app = press(compare(), "unsure")
    assert "25 of 25 answers, 1 of them unsure" in said_progress(app)
    assert "compare_train" not in [button.key for button in app.button], "24 of them say something"
    press(app, "choose 1", "See what 25 answers teach")
    settings = LearningSettings(supervision="answers")
    assert started == [("train", {"name": "Answers", "settings": asdict(settings), "use": False})]


@pytest.mark.parametrize("is_better", [True, False])
def test_verdict_is_one_sentence_with_two_bars(full, survey, is_better):
    """Only a better model is recommended; the listener can always keep answering."""
    model_id = add_answers_model(full, is_better=is_better)
    app = compare()
    sentence = "It agrees with you in 71 of 100 questions it had not seen (before 62; sure within 9)."
    assert sentence in said(app)
    assert [bar.proto.text for bar in app.get("progress")][1:] == ["Now: 71 of 100", "Before: 62 of 100"]
    assert not re.search("AUC|MAP|comparisons in order", said(app))
    assert ("25 more would help" in said(app)) == (not is_better)
    kinds = [app.button(key=key).proto.type for key in (f"compare_use_{model_id}", "compare_go_on")]
    assert kinds == (["primary", "secondary"] if is_better else ["secondary", "primary"])
    press(app, "Keep asking")
    assert sentence not in said(app)
    assert sentence not in said(app.run())


def test_verdict_is_about_the_listener(full, survey):
    ids = [song.id for song in full.songs()]
    for name in ("Ann", "Bob"):
        full.judgments.add(name, "odd", ids[:3], 0)
    add_answers_model(full, is_better=True, listener="Ann")
    assert "It agrees with you" in said(type_name(compare(), "Ann"))
    assert "It agrees with you" not in said(type_name(compare(), "Bob"))


def add_answers_model(library, *, is_better: bool, listener: str = "") -> str:
    """Add a model that was learned from 25 answers; its report is crafted."""
    base = library.models.native()
    settings = asdict(LearningSettings(supervision="answers", listener=listener))
    gain = {"before": 0.62, "after": 0.71, "mean": 0.09, "low": 0.0, "high": 0.18}
    if is_better:
        gain |= {"low": 0.002}
    report = {
        "name": "Answers", "base": "Sound", "created_at": 1.0, "seconds": 1.0, "version": "1", "settings": settings,
        "detail": "25 answers", "n_songs": 12, "C": 1.0, "untrained": 0.6, "path": [], "stopped_early": False,
        "answers": {"n": 25, "questions": 25, "comparisons": 50, "songs": 12, "agreed": gain}, "n_shuffled": 5,
        "leads": {"order": gain | {"above_low": 0.01 if is_better else -0.01, "above_high": 0.2, "shuffled": 0.0}},
        "is_better": is_better, "hubness": {"before": 1.0, "after": 1.0}, "changed": [],
    }  # fmt: skip
    model = take_snapshot(library, base.id).model
    record = new_record(LEARNED_KIND, "Answers", model, 12, base_id=base.features_of, **settings)
    fill = partial(follow_owner, library, record)
    return publish(library, model, record, fill=fill, report=report, progress=hush, walk=False)


# --- export and import ----------------------------------------------------------------------------


def upload(app: AppTest, data: bytes, name: str = "answers.csv") -> AppTest:
    app.get("file_uploader")[0].set_value((name, data, "text/csv")).run()
    return press(app, "Import")


def test_answers_round_trip_without_duplicates(full, survey):
    app = press(compare(), "choose 0", "unsure")
    text = io.BytesIO()
    assert export_answers(full, text) == 2
    kept = [(a.song_ids, a.chosen) for a in full.judgments.answers()]
    upload(app, text.getvalue())
    assert "2 answers read: 0 added, 2 already here." in said(app)
    press(app, "Delete answers")
    upload(app, text.getvalue())
    assert "2 answers read: 2 added." in said(app)
    assert [(a.song_ids, a.chosen) for a in full.judgments.answers()] == kept


def test_file_without_answers_gives_clear_error(full, survey):
    app = upload(compare(), b"\x00\xff\xfe nothing of the kind")
    assert not app.exception
    assert full.judgments.answers() == []
    assert [*app.error, *app.warning], "says what is wrong"


def test_answers_about_unknown_songs_are_counted(full, survey):
    app = upload(compare(), b"song1,song2,song3,picked_song\na.mp3,b.mp3,c.mp3,b.mp3\n")
    assert "1 answer read: 0 added, 1 about songs not in this library." in said(app)


def test_choices_and_question_survive_page_switch(full, survey):
    ids = [song.id for song in full.songs()]
    for name in ("Ann", "Bob"):
        full.judgments.add(name, "odd", ids[:3], 0)
    app = type_name(compare(), "Bob")
    choose(app, "compare_form", "like")
    choose(app, "compare_names", True)
    waiting = asked(app)
    app.switch_page(PAGES["library"]).run()
    app.switch_page(PAGES["train"]).run()
    assert not app.exception
    assert app.selectbox(key="compare_listener").value == "Bob"
    assert app.toggle(key="compare_names").value
    assert sent(app)["form"] == "like"
    assert asked(app) == waiting


# --- with the real survey -------------------------------------------------------------------------


def test_answers_twelve_questions(full):
    app = compare()
    for n in range(12):
        data = sent(app)
        assert len({song["track"]["url"] for song in data["songs"]}) == 3
        press(app, f"choose {n % 3}")
    answers = full.judgments.answers()
    assert [a.chosen for a in answers] == [n % 3 for n in range(12)]
    assert all(a.foreseen is not None for a in answers)
    n_random = sum(a.is_random for a in answers)
    assert (f"of {count(n_random, 'case')} (" if n_random else "not known until a random question") in said(app)
