"""The songs of a question side by side; the listener plays them and chooses one, with clicks or keys."""

from typing import Any

from musicsim.explorer.playlists.tracks import make_track, render_track
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.questions import Question
from musicsim.library import Library, Song
from musicsim.library.media.sound import has_sound
from musicsim.ui.base.keys import read_event
from musicsim.ui.base.scripts import component
from musicsim.ui.compare import session
from musicsim.wording import clean

_KEY = "compare_cards"
_QUESTIONS = {"odd": "Which one does not belong?", "like": "Which is more like the first?"}


def show_cards(snapshot: Snapshot, question: Question) -> None:
    """Show the pending question, and the previous one, which can be undone."""

    def receive() -> None:
        sent = read_event(_KEY, "action")
        if isinstance(sent, dict) and isinstance(sent.get("at"), int):
            chosen = sent.get("chosen")
            session.act(str(sent.get("kind")), sent["at"], chosen if isinstance(chosen, int) else None)

    last = session.last_answer(snapshot.library)
    component("ui/assets/compare.js")(
        key=_KEY, height="content", on_action_change=receive,
        data={
            "turn": session.ASKED.get().turn, "form": question.form, "question": _QUESTIONS[question.form],
            "songs": [
                _card(snapshot.library, song, _mark(question.form, place), is_named=session.SHOW_NAMES.get())
                for place, song in enumerate(snapshot.songs_by_id(question.song_ids))
            ],
            "last": _last(snapshot, last.pending.question, last.chosen) if last is not None else None,
        },
    )  # fmt: skip


def _mark(form: str, place: int) -> str:
    return "First" if form == "like" and place == 0 else str(place + (form == "odd"))


def _card(library: Library, song: Song, mark: str, *, is_named: bool) -> dict[str, Any]:
    """Return a song with the sound of its most typical 30 seconds; the sound is None if the file is missing."""
    sound = None
    if not song.is_missing and has_sound(library, song):
        preview = render_track(make_track(library, song, preview=True))
        sound = {name: preview[name] for name in ("url", "start_s", "loudness")}  # no names, which would tell too much
    names = (clean(song.title), clean(song.byline)) if is_named else (None, None)
    return {"mark": mark, "title": names[0], "by": names[1], "track": sound}


def _last(snapshot: Snapshot, question: Question, chosen: int | None) -> dict[str, Any]:
    labels = {song.id: clean(song.label) for song in snapshot.songs_by_id(question.song_ids)}
    marks = [_mark(question.form, place) for place in range(len(question.song_ids))]
    answer = "does not belong." if question.form == "odd" else "is more like the first."
    return {
        "said": "You were unsure." if chosen is None else f"You said: {marks[chosen]} {answer}",
        "songs": [
            {"mark": mark, "name": labels.get(song_id, "a deleted song"), "is_chosen": place == chosen}
            for place, (mark, song_id) in enumerate(zip(marks, question.song_ids, strict=True))
        ],
    }
