"""Thumbs on the songs of a queue, and saving them to learn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import streamlit as st

from musicsim.explorer.search.feedback import Thumbs, what_changed
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.public import is_public
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import off_if, plain, toast_errors
from musicsim.ui.base.visitors import opinions
from musicsim.ui.listen import state

THUMBS = {"like": 1, "unlike": -1}
"""The value of each thumb, keyed by the name of its button in the song list."""
_MAX_SEARCHES = 50


@dataclass(frozen=True, slots=True)
class _Feedback:
    """Thumbs on the songs of one queue, and those that were saved when the page was last drawn."""

    thumbs: Thumbs = field(default_factory=Thumbs)
    saved: Mapping[int, int] = field(default_factory=dict)


_FEEDBACK: Key[dict[str, _Feedback]] = Key("search_feedback", dict, "thumbs by the name of the seed", is_kept=True)
_SHOWN: Key[list[Song]] = Key("feedback_shown", list, "songs in the queue before the last thumb")


def thumbs_of(snapshot: Snapshot, seed: str, song_id: int | None) -> Thumbs:
    """Return this session's thumbs, or the saved ones, for songs that are still in the library.

    `song_id` is the id of the seed if it is in the library.
    """
    saved = {} if song_id is None else opinions(snapshot.library).judgments.ratings_of(song_id)
    before = _FEEDBACK.get().get(seed)
    # if all thumbs are saved, use changes that another tab has saved since
    if before is None or before.thumbs.judged == before.saved != saved:
        thumbs = Thumbs(tuple(saved.items()))
    else:
        ids = dict(before.thumbs.votes)
        present = {song.id for song in snapshot.songs_by_id(ids)}
        if len(present) < len(ids):  # perhaps only the files of these songs are missing
            present |= {song.id for song in snapshot.library.songs(ids, missing=True)}
        thumbs = before.thumbs.select(present)
    _store(seed, _Feedback(thumbs, saved))
    return thumbs


def _feedback(seed: str) -> _Feedback:
    return _FEEDBACK.get().get(seed) or _Feedback()


def _store(seed: str, feedback: _Feedback) -> None:
    """Store the feedback for a seed, and drop the oldest feedback."""
    items = {name: other for name, other in _FEEDBACK.get().items() if name != seed} | {seed: feedback}
    _FEEDBACK.set(dict(list(items.items())[-_MAX_SEARCHES:]))


def _change(seed: str, thumbs: Thumbs) -> None:
    state.change(thumbs=_feedback(seed).thumbs)
    restore_thumbs(seed, thumbs)


def restore_thumbs(seed: str, thumbs: Thumbs) -> None:
    """Replace the thumbs of a queue, for example with those from :func:`musicsim.ui.listen.state.undo`."""
    _store(seed, replace(_feedback(seed), thumbs=thumbs))


def press_thumb(seed: str, song_id: int, value: int, shown: list[Song] | None = None) -> None:
    """Press a thumb, or release it if it was pressed, in a callback. `shown` is the queue before the click."""
    _SHOWN.set(shown or [])
    thumbs = _feedback(seed).thumbs
    _change(seed, thumbs.add(song_id, 0 if thumbs.judged.get(song_id) == value else value))


def _save(library: Library, song_id: int, judged: dict[int, int]) -> None:
    with toast_errors():
        library.judgments.rate_results(song_id, judged)
        st.toast("Saved. You can train on these thumbs." if judged else "Discarded.", icon=":material/check:")


def say_what_changed(songs: list[Song]) -> None:
    """Show the effect of the last thumb once."""
    before = _SHOWN.get()
    if before:
        st.caption(plain(what_changed(before, songs)))
        _SHOWN.set([])


def feedback_bar(snapshot: Snapshot, seed: str, song_id: int | None) -> None:
    """Show buttons that drop and save thumbs, and the songs that the thumbs hide."""
    feedback = _feedback(seed)
    thumbs = feedback.thumbs
    if not thumbs.votes and not feedback.saved:
        return
    with st.container(horizontal=True):
        st.button(
            "Drop all thumbs", icon=":material/restart_alt:", key="feedback_over",
            on_click=_change, args=(seed, Thumbs()), **off_if(not thumbs.votes, "There are no thumbs yet."),
        )  # fmt: skip
        if not is_public():  # a visitor cannot train
            can_learn = song_id is not None
            is_pressed = st.button(
                "Keep thumbs", icon=":material/bookmark:", key="feedback_keep",
                **off_if(
                    not can_learn or thumbs.judged == feedback.saved,
                    "These thumbs are saved."
                    if can_learn
                    else "Models learn only from thumbs on songs in your library: add the file first.",
                    "Save these thumbs, so that the Train page can learn from them.",
                ),
            )  # fmt: skip
            if is_pressed and song_id is not None:  # not a callback, because a fragment's callback cannot show a toast
                _save(snapshot.library, song_id, thumbs.judged)
                st.rerun()
    hidden = snapshot.songs_by_id(thumbs.unfitting)
    if hidden:
        labels = {song.id: plain(song.label) for song in hidden}

        def release() -> None:
            picked = st.session_state["feedback_unfitting"]
            if picked is not None:
                press_thumb(seed, picked, -1)

        st.pills(
            "Hidden (click to undo)", list(labels), format_func=lambda i: f"{labels[i]} ✕",
            key="feedback_unfitting", on_change=release,
        )  # fmt: skip
