"""Labels that songs are without, guessed from songs like them: some or all can be accepted, and taken back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.guessing.guess import (
    MIN_RIGHT,
    N_VOTES,
    TARGETS,
    USUAL_VOTES,
    VOTERS,
    Guess,
    Guesses,
    enter_guesses,
    guess_labels,
)
from musicsim.library import Library
from musicsim.library.stores.tag_edits import TagChange
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, shown
from musicsim.ui.components.table_download import table_download
from musicsim.ui.library.review import chosen_or_all

_VOTERS_SAID = {"vectors": "Nearest songs", "codes": "Learned codes"}
_CODES_HELP = (
    "Learned codes: takes a few seconds to learn codes that separate your labels; the songs with the "
    "nearest codes then vote. Use whichever is right more often."
)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """What was last entered, as the changes that take it back."""

    library: str
    back: list[TagChange]


_ACCEPTED: dict[str, Key[_Accepted | None]] = {
    target: Key(f"{target}s_accepted", lambda: None, f"the guesses of {target}s that were last accepted")
    for target in TARGETS
}
_BY = {target: Key(f"{target}s_by", lambda: VOTERS[0], f"who votes on the {target}s of songs") for target in TARGETS}


@st.cache_data(max_entries=8, show_spinner="Asking similar songs…")
def _guesses(folder: Path, revision: int, model_id: str | None, target: str, by: str, _snapshot: Snapshot) -> Guesses:
    return guess_labels(_snapshot, target, by=by)


def _accept(library: Library, target: str, guesses: Sequence[Guess], least: int) -> None:
    back = enter_guesses(library, guesses, least)
    if back:  # else what was accepted before can still be taken back
        _ACCEPTED[target].set(_Accepted(library.name, back))


def _take_back(library: Library, target: str, accepted: _Accepted) -> None:
    library.edits.change(accepted.back)
    _ACCEPTED[target].set(None)


def guesses_review(now: Snapshot, target: str) -> None:
    """Songs without a genre or an artist, each with what songs near it say."""
    if not now.n_indexed:
        st.caption("No song has been compared with others yet.")
        return
    accepted = _ACCEPTED[target].get()
    if accepted is not None and accepted.library == now.library.name:
        n_songs = len({change.song_id for change in accepted.back})
        st.button(
            f"Undo {n_songs:,} {target}{'s' * (n_songs != 1)}", icon=":material/undo:", key=f"{target}s_back",
            on_click=_take_back, args=(now.library, target, accepted),
        )  # fmt: skip
    _BY[target].keep()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        choices = st.container(width="content"), st.container(width=320)
    found = _found(now, target)
    if found is None or found.guesses:
        choices[0].segmented_control(
            "Guess from", VOTERS, required=True, key=_BY[target].name, format_func=_VOTERS_SAID.__getitem__,
            help=_CODES_HELP,
        )  # fmt: skip
    if found is None:
        return
    if not found.guesses:
        st.caption(found.summary(USUAL_VOTES[target]))
        return
    least = choices[1].slider("Minimum votes", 1, N_VOTES[target], USUAL_VOTES[target], key=f"{target}s_votes")
    kept = found.kept(least)
    st.caption(f"{_who(target)} {found.summary(least)}")
    actions = st.container(horizontal=True, vertical_alignment="center")
    # a table of other songs is another one: marks would stay where they were, on whatever songs stand there then
    songs = hash((now.library.name, *(guess.song.id for guess in kept)))
    marked = st.dataframe(
        _table(kept, least), hide_index=True, key=f"library_{target}s_{songs}", on_select="rerun",
        selection_mode="multi-row",
    )  # fmt: skip
    for_all = found.can_accept_all(least)
    chosen = chosen_or_all(marked.selection.rows, kept) if for_all or marked.selection.rows else []
    with actions:
        st.button(
            f"Accept {len(chosen):,}", icon=":material/check:", disabled=not chosen, key=f"{target}s_accept",
            on_click=_accept, args=(now.library, target, chosen, least),
        )  # fmt: skip
        table_download(f"guessed {target}s", lambda: _table(kept, least), f"{target}s_file")
        st.caption(
            "Select rows to accept only those; with no selection the button accepts all. The files are not changed."
            if for_all
            else f"Select rows to accept them: all at once can be accepted where at least {MIN_RIGHT:.0%} of such "
            "guesses are right. The files are not changed."
        )


def _found(now: Snapshot, target: str) -> Guesses | None:
    """The guesses of who is chosen to vote; None, said in the page, where codes cannot be learned."""
    model_id = now.record.id if now.record else None
    try:
        return _guesses(now.library.folder, now.revision, model_id, target, _BY[target].get(), now)
    except MusicsimError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return None


def _table(guesses: Sequence[Guess], least: int) -> pd.DataFrame:
    tags = [tag for tag in ("genre", "artist", "album") if any(tag in g.entered(least) for g in guesses)]
    votes = [[n for n in g.votes if n >= least] for g in guesses]
    return pd.DataFrame(
        {
            "title": [shown(g.song.title) for g in guesses],
            "by": [shown(g.song.by) for g in guesses],
            **{tag: [shown(g.entered(least).get(tag, "")) for g in guesses] for tag in tags},
            "votes": [f"{', '.join(map(str, n))} of {g.n_voters}" for n, g in zip(votes, guesses, strict=True)],
        }
    )


def _who(target: str) -> str:
    if _BY[target].get() == "codes":
        return f"The {N_VOTES[target]} songs with the nearest learned codes vote."
    return f"The {N_VOTES[target]} most similar songs vote."


def draw_artists(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw guesses of missing artists, if the user asks for them."""
    st.subheader("Songs without an artist", anchor=False)
    if st.toggle(
        "Guess artists from similar songs",
        key="guess_artists",
        help="Few such guesses are right: songs of other artists sound alike, too.",
    ):
        guesses_review(snapshot, "artist")


def draw_genres(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw guesses of missing genres."""
    st.subheader("Songs without a genre", anchor=False)
    guesses_review(snapshot, "genre")
