"""The songs of a question side by side; the listener plays them and chooses one, with clicks or keys."""

from typing import Any, Protocol, TypeVar

from musicsim.explorer import Snapshot
from musicsim.explorer.playlists.tracks import make_track, render_track
from musicsim.library import Library, Song, has_sound
from musicsim.ui.base import component
from musicsim.ui.base.keys import read_event
from musicsim.ui.components.trials.session import Asked, Session
from musicsim.wording import clean

_QUESTIONS = {"odd": "Which one does not belong?", "like": "Which is more like the first?"}


class SongQuestion(Protocol):
    """A question about songs, in the order on the page; for the form "like", the first one is the reference."""

    @property
    def form(self) -> str: ...
    @property
    def song_ids(self) -> tuple[int, ...]: ...


Q = TypeVar("Q", bound=SongQuestion)


def show_cards(
    session: Session[Q], snapshot: Snapshot, asked: Asked[Q], last: Asked[Q] | None, *, key: str,
    is_named: bool = False, tells_names: bool = True,
) -> None:  # fmt: skip
    """Show the question on the page, and the answer `last`, which can be undone.

    With `is_named`, the songs have names before the answer; with `tells_names`, those of the last answer have.
    """

    def receive() -> None:
        sent = read_event(key, "action")
        if isinstance(sent, dict) and isinstance(sent.get("at"), int):
            chosen = sent.get("chosen")
            act(session, str(sent.get("kind")), sent["at"], chosen if isinstance(chosen, int) else None)

    question = asked.question
    component("ui/assets/compare.js")(
        key=key, height="content", on_action_change=receive,
        data={
            "turn": session.key.get().turn, "form": question.form, "question": _QUESTIONS[question.form],
            "songs": [
                _card(snapshot.library, song, _mark(question, place), is_named=is_named)
                for place, song in enumerate(snapshot.songs_by_id(question.song_ids))
            ],
            "last": _last(snapshot, last.question, last.chosen, tells_names=tells_names) if last is not None else None,
        },
    )  # fmt: skip


def act(session: Session[Q], kind: str, at: int, chosen: int | None = None) -> None:
    """Carry out an action from the browser, in a callback. Unknown kinds are ignored.

    `at` is the turn of the action; actions from earlier turns are ignored. `chosen` is the chosen song's position.
    """
    sitting = session.key.get()
    if at != sitting.turn:
        return
    if kind == "undo":
        session.undo()
    elif kind == "skip":
        session.skip()
    elif kind == "unsure":
        session.answer(None)
    elif kind == "choose" and chosen is not None and sitting.current is not None:
        question = sitting.current.question
        if chosen in range(_n_fixed(question), len(question.song_ids)):
            session.answer(int(chosen))  # an int, because a browser may send true for 1


def _n_fixed(question: SongQuestion) -> int:
    """Return the number of songs that cannot be chosen, because the others are compared with them."""
    return int(question.form == "like")


def _mark(question: SongQuestion, place: int) -> str:
    return "First" if place < _n_fixed(question) else str(place + 1 - _n_fixed(question))


def _card(library: Library, song: Song, mark: str, *, is_named: bool) -> dict[str, Any]:
    """Return a song with the sound of its most typical 30 seconds; the sound is None if the file is missing."""
    sound = None
    if not song.is_missing and has_sound(library, song):
        preview = render_track(make_track(library, song, preview=True))
        sound = {name: preview[name] for name in ("url", "start_s", "loudness")}  # no names, which would tell too much
    names = (clean(song.title), clean(song.byline)) if is_named else (None, None)
    return {"mark": mark, "title": names[0], "by": names[1], "track": sound}


def _last(snapshot: Snapshot, question: SongQuestion, chosen: int | None, *, tells_names: bool) -> dict[str, Any]:
    song_ids = question.song_ids if tells_names else ()
    labels = {song.id: clean(song.label) for song in snapshot.songs_by_id(song_ids)}
    answer = "does not belong." if question.form == "odd" else "is more like the first."
    return {
        "said": "You were unsure." if chosen is None else f"You said: {_mark(question, chosen)} {answer}",
        "songs": [
            {
                "mark": _mark(question, place),
                "name": labels.get(song_id, "a deleted song"),
                "is_chosen": place == chosen,
            }
            for place, song_id in enumerate(song_ids)
        ],
    }
