"""Thumbs on the results of a search: undo, and saving them to learn from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import streamlit as st

from musicsim.explorer.search.feedback import Thumbs, what_changed
from musicsim.explorer.search.query import Hit
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.public import is_public
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, toast_errors
from musicsim.ui.base.visitors import opinions

THUMBS = {"like": 1, "unlike": -1}
"""Values of thumbs, by the action of the result list."""
_MAX_SEARCHES = 50


@dataclass(frozen=True, slots=True)
class _Feedback:
    """Thumbs on the results of a search, and those that were saved when the page was last drawn."""

    thumbs: Thumbs = field(default_factory=Thumbs)
    saved: Mapping[int, int] = field(default_factory=dict)


_FEEDBACK: Key[dict[str, _Feedback]] = Key("search_feedback", dict, "thumbs by the name of the search")


def thumbs_of(snapshot: Snapshot, search: str, song_id: int | None) -> Thumbs:
    """Return the thumbs of this session, or saved ones, on a search's results; `song_id` is the query's, if any."""
    saved = {} if song_id is None else opinions(snapshot.library).judgments.ratings_of(song_id)
    before = _FEEDBACK.get().get(search)
    # without unsaved thumbs, follow changes that another tab has saved
    if before is None or before.thumbs.judged == before.saved != saved:
        thumbs = Thumbs(tuple(saved.items()))
    else:
        ids = dict(before.thumbs.votes)
        present = {song.id for song in snapshot.songs_by_id(ids)}
        if len(present) < len(ids):  # perhaps only the files of these songs are missing
            present |= {song.id for song in snapshot.library.songs(ids, missing=True)}
        thumbs = before.thumbs.select(present)
    _store(search, _Feedback(thumbs, saved))
    return thumbs


def _feedback(search: str) -> _Feedback:
    return _FEEDBACK.get().get(search) or _Feedback()


def _store(search: str, feedback: _Feedback) -> None:
    """Store feedback as the latest, and drop the oldest."""
    items = {name: other for name, other in _FEEDBACK.get().items() if name != search} | {search: feedback}
    _FEEDBACK.set(dict(list(items.items())[-_MAX_SEARCHES:]))


def _change(search: str, thumbs: Thumbs) -> None:
    _store(search, replace(_feedback(search), thumbs=thumbs))


def press_thumb(search: str, song_id: int, value: int) -> None:
    """Press a thumb, or release it if it was pressed; for callbacks."""
    thumbs = _feedback(search).thumbs
    _change(search, thumbs.add(song_id, 0 if thumbs.judged.get(song_id) == value else value))


def _save(library: Library, song_id: int, judged: dict[int, int]) -> None:
    with toast_errors():
        library.judgments.rate_results(song_id, judged)
        st.toast("Saved. The Train page can learn from it." if judged else "Discarded.", icon=":material/check:")


def feedback_bar(snapshot: Snapshot, search: str, song_id: int | None, before: list[Hit], after: list[Hit]) -> None:
    """Show the effect of the last thumb on the results, buttons to undo and save, and hidden songs."""
    feedback = _feedback(search)
    thumbs = feedback.thumbs
    can_undo = bool(thumbs.votes) or thumbs.earlier is not None
    if not can_undo and not feedback.saved:
        st.caption("Use the thumbs to rate results; the list updates right away.")
        return
    changes = plain(what_changed([hit.song for hit in before], [hit.song for hit in after]))
    st.caption(changes if thumbs.votes else "The last thumb was undone.")
    with st.container(horizontal=True):
        st.button(
            "Undo", icon=":material/undo:", key="feedback_undo", disabled=not can_undo,
            on_click=lambda: _change(search, _feedback(search).thumbs.undo()),
        )  # fmt: skip
        st.button(
            "Start over", icon=":material/restart_alt:", key="feedback_over", disabled=not thumbs.votes,
            on_click=lambda: _change(search, _feedback(search).thumbs.start_over()),
        )  # fmt: skip
        if not is_public():  # a visitor cannot train
            can_learn = song_id is not None
            st.button(
                "Keep", icon=":material/bookmark:", key="feedback_keep", on_click=_save,
                args=(snapshot.library, song_id, thumbs.judged),
                disabled=not can_learn or thumbs.judged == feedback.saved,
                help="Save these thumbs, so that the Train page can learn from them."
                if can_learn
                else "Models learn only from thumbs on songs in your library: add the file first.",
            )  # fmt: skip
    hidden = snapshot.songs_by_id(thumbs.unfitting)
    if hidden:
        labels = {song.id: plain(song.label) for song in hidden}

        def release() -> None:
            picked = st.session_state["feedback_unfitting"]
            if picked is not None:
                press_thumb(search, picked, -1)

        st.pills(
            "Hidden (click to undo)", list(labels), format_func=lambda i: f"{labels[i]} ✕",
            key="feedback_unfitting", on_change=release,
        )  # fmt: skip
