"""Thumbs on the queue: the list follows, undo, start over, keep, and messages about an upload."""

import pytest
import streamlit as st

from musicsim.library.db import schema
from musicsim.ui.components.song_list import Action
from musicsim.ui.listen import queue_view
from tests.library.forgetting import forget
from tests.pages.actions import open_page
from tests.sounds import write_song


@pytest.fixture(autouse=True)
def row_buttons(monkeypatch):
    """Buttons for the thumbs of each row: AppTest cannot click into the component that draws the list."""

    def buttons(rows, *, key, on_action, **_):
        for index, row in enumerate(rows):
            for kind in ("like", "unlike"):
                action = Action(kind, index, row.song_id)
                st.button(kind, key=f"{kind} {row.song_id}", on_click=on_action, args=(action,))
            st.caption(f"{row.song_id}|{row.judged}")

    monkeypatch.setattr(queue_view, "song_list", buttons)


@pytest.fixture
def search(full):
    app = open_page("listen")
    app.session_state["chosen"] = full.songs()[0].id
    app.session_state["search_more"] = True
    app.run()
    assert not app.exception
    return app


def rows(app):
    """Return song id and thumb of each result."""
    return [tuple(c.value.split("|")) for c in app.caption if c.value.count("|") == 1]


def press(app, key):
    app.button(key=key).click().run()
    assert not app.exception
    return rows(app)


def said(app):
    return [c.value for c in app.caption]


def test_thumbs_rerank_immediately_and_are_undone(search):
    before = rows(search)
    assert {thumb for _, thumb in before} == {"0"}
    last, first = before[-1][0], before[0][0]
    after = press(search, f"like {last}")
    assert (last, "1") in after
    assert [i for i, _ in after].index(last) < len(before) - 1
    assert any("rose from position" in line for line in said(search))
    gone = press(search, f"unlike {first}")
    assert first not in {i for i, _ in gone}
    assert press(search, "listen_undo") == after
    assert press(search, f"like {last}") == before, "a thumb that is pressed again lets go"
    press(search, f"unlike {first}")
    assert press(search, "feedback_over") == before


def test_saved_thumbs_are_restored_and_can_be_deleted(search, full):
    song = search.session_state["chosen"]
    first, second = (int(i) for i, _ in rows(search)[:2])
    press(search, f"like {first}")
    press(search, f"unlike {second}")
    assert full.judgments.ratings_of(song) == {}
    press(search, "feedback_keep")
    assert full.judgments.ratings_of(song) == {first: 1, second: -1}
    assert search.button(key="feedback_keep").disabled
    again = open_page("listen")
    again.session_state["chosen"], again.session_state["search_more"] = song, True
    again.run()
    assert (str(first), "1") in rows(again)
    press(again, "feedback_over")
    press(again, "feedback_keep")
    assert full.judgments.ratings_of(song) == {}


def test_thumb_down_is_removed_by_name(search):
    first = rows(search)[0][0]
    press(search, f"unlike {first}")
    search.button_group(key="feedback_unfitting").set_value(int(first)).run()
    assert not search.exception
    assert (first, "0") in rows(search)


def test_thumbs_on_upload_cannot_be_saved(full, tmp_path):
    app = open_page("listen")
    app.session_state["search_more"] = True
    query = write_song(tmp_path / "query.ogg", "tones", seed=5)
    app.file_uploader[0].set_value((query.name, query.read_bytes(), "audio/ogg")).run()
    assert not app.exception
    last = rows(app)[-1][0]
    assert (last, "1") in press(app, f"like {last}")
    assert app.button(key="feedback_keep").disabled


def test_thumbs_saved_in_other_tab_are_merged(search, full):
    song = search.session_state["chosen"]
    first, second = (int(i) for i, _ in rows(search)[:2])
    full.judgments.rate_results(song, {first: 1})
    search.run()
    assert (str(first), "1") in rows(search)
    assert search.button(key="feedback_keep").disabled
    assert not search.button(key="feedback_over").disabled
    full.judgments.rate_results(song, {second: 1})
    search.run()
    assert {(str(first), "0"), (str(second), "1")} <= set(rows(search))
    full.judgments.rate_results(song, {})
    search.run()
    assert {thumb for _, thumb in rows(search)} == {"0"}
    press(search, f"like {first}")
    full.judgments.rate_results(song, {second: 1})
    search.run()
    assert (str(first), "1") in rows(search), "what was said here stays"


def test_deleted_song_does_not_block_saving_thumbs(search, full):
    song = search.session_state["chosen"]
    first, second, third = (int(i) for i, _ in rows(search)[:3])
    press(search, f"like {first}")
    press(search, f"like {second}")
    forget(full, first)
    search.run()
    press(search, "feedback_keep")
    assert full.judgments.ratings_of(song) == {second: 1}
    press(search, f"like {third}")
    forget(full, second)
    search.run()
    assert not search.button(key="feedback_keep").disabled
    press(search, "feedback_keep")
    assert full.judgments.ratings_of(song) == {third: 1}
    assert search.button(key="feedback_keep").disabled
    forget(full, third)
    search.run()
    assert not search.exception
    assert "feedback_keep" not in {button.key for button in search.button}


def test_saved_thumb_of_missing_song_is_kept(search, full):
    song = search.session_state["chosen"]
    first, second = (int(i) for i, _ in rows(search)[:2])
    press(search, f"like {first}")
    press(search, "feedback_keep")
    with full.write() as connection:
        away = schema.files.c.song_id == first
        connection.execute(schema.files.update().where(away).values(missing_since=1.0))
    search.run()
    assert search.button(key="feedback_keep").disabled
    press(search, f"like {second}")
    press(search, "feedback_keep")
    assert full.judgments.ratings_of(song) == {first: 1, second: 1}
