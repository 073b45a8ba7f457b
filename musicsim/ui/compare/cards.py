"""The songs of a question side by side, to hear and to choose from, by clicks or by keys."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.questions import Question
from musicsim.library import Library, Song
from musicsim.library.media.sound import has_sound
from musicsim.ui.base.asset import asset
from musicsim.ui.base.keys import QUEUE_LIBRARY
from musicsim.ui.base.text import shown
from musicsim.ui.components.listening import track
from musicsim.ui.components.player import as_json

_KEY = "compare_cards"
_QUESTIONS = {"odd": "Which one does not belong?", "like": "Which is more like the first?"}


def show_cards(
    now: Snapshot,
    asked: Question,
    *,
    turn: int,
    is_named: bool,
    last: tuple[Question, int | None] | None,
    on_action: Callable[[str, int, int | None], None],
) -> None:
    """Show a question.

    Parameters
    ----------
    turn : int
        Its number in this session; comes back with what the listener does.
    is_named : bool
        Whether titles and artists stand there before the answer.
    last : (Question, int or None), optional
        The question before with the place of the song that was chosen, which can be taken back.
    on_action : callable of kind, turn, place
        Called as a widget's callback; see :func:`musicsim.ui.compare.session.act`.
    """

    def receive() -> None:
        sent = st.session_state[_KEY].get("action")
        if isinstance(sent, dict) and isinstance(sent.get("at"), int):
            chosen = sent.get("chosen")
            on_action(str(sent.get("kind")), sent["at"], chosen if isinstance(chosen, int) else None)

    component = st.components.v2.component("musicsim_compare", css=asset("compare.css"), js=asset("compare.js"))
    component(
        key=_KEY,
        data={
            "turn": turn,
            "form": asked.form,
            "question": _QUESTIONS[asked.form],
            "songs": _songs(now, asked, is_named=is_named),
            "last": _last(now, *last) if last is not None else None,
            "is_queue_ours": QUEUE_LIBRARY.get() == now.library.name,
        },
        height="content",
        on_action_change=receive,
    )


def _mark(form: str, place: int) -> str:
    """What a song is called as long as it has no name."""
    return "First" if form == "like" and place == 0 else str(place + (form == "odd"))


def _songs(now: Snapshot, asked: Question, *, is_named: bool) -> list[dict[str, Any]]:
    return [
        {
            "mark": _mark(asked.form, place),
            "title": shown(song.title) if is_named else None,
            "by": shown(song.by) if is_named else None,
            "track": _track(now.library, song, _mark(asked.form, place), is_named=is_named),
        }
        for place, song in enumerate(now.songs_by_id(asked.song_ids))
    ]


def _track(library: Library, song: Song, mark: str, *, is_named: bool) -> dict[str, Any] | None:
    """The song as the player takes it, from its most typical 30 seconds on; None where no file holds it."""
    if song.is_missing or not has_sound(library, song):
        return None
    heard = track(library, song, preview=True)
    if is_named:
        heard = replace(heard, title=shown(song.title), artist=shown(song.by))
    else:
        hidden = f"Song {mark}" if mark.isdigit() else "The first song"
        heard = replace(heard, title=hidden, artist="", cover_url="", is_blind=True)
    return as_json(heard)


def _last(now: Snapshot, asked: Question, chosen: int | None) -> dict[str, Any]:
    labels = {song.id: shown(song.label) for song in now.songs_by_id(asked.song_ids)}
    return {
        "said": _said(asked, chosen),
        "songs": [
            {
                "mark": _mark(asked.form, place),
                "name": labels.get(song_id, "a deleted song"),
                "is_chosen": place == chosen,
            }
            for place, song_id in enumerate(asked.song_ids)
        ],
    }


def _said(asked: Question, chosen: int | None) -> str:
    if chosen is None:
        return "You were unsure."
    mark = _mark(asked.form, chosen)
    return f"You said: {mark} " + ("does not belong." if asked.form == "odd" else "is more like the first.")
