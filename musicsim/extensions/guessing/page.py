"""Guesses of missing labels on the Library page, with buttons to accept and undo them."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot
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
from musicsim.library import Library, TagChange
from musicsim.ui import pick_rows
from musicsim.ui.base import Key, off_if, plain
from musicsim.ui.components import table_download
from musicsim.wording import clean, count

_VOTER_LABELS = {"vectors": "Nearest songs", "codes": "Learned codes"}
_CODES_HELP = (
    "Learned codes: musicsim learns bit codes that separate your labels, which takes a few seconds. The songs with the "
    "nearest codes then vote. Use the kind whose guesses are right more often."
)


# name of the library, and the changes that undo the last accepted guesses
_ACCEPTED: dict[str, Key[tuple[str, list[TagChange]] | None]] = {
    target: Key(f"{target}s_accepted", lambda: None, f"last accepted guesses of {target}s") for target in TARGETS
}
_BY = {target: Key(f"{target}s_by", lambda: VOTERS[0], f"kind of voters for {target}s") for target in TARGETS}


@st.cache_data(max_entries=8, show_spinner="Asking similar songs…")
def _guesses(folder: Path, revision: int, model_id: str | None, target: str, by: str, _snapshot: Snapshot) -> Guesses:
    return guess_labels(_snapshot, target, by=by)


def _accept(library: Library, target: str, guesses: Sequence[Guess], min_votes: int) -> None:
    undo = enter_guesses(library, guesses, min_votes)
    if undo:  # otherwise, the user can still undo the previous guesses
        _ACCEPTED[target].set((library.name, undo))


def _undo(library: Library, target: str, changes: list[TagChange]) -> None:
    library.edits.change(changes)
    _ACCEPTED[target].set(None)


def _draw_guesses(snapshot: Snapshot, target: str) -> None:
    if not snapshot.n_indexed:
        st.caption("The songs have not been compared yet.")
        return
    accepted = _ACCEPTED[target].get()
    if accepted is not None and accepted[0] == snapshot.library.name:
        n_songs = len({change.song_id for change in accepted[1]})
        st.button(
            f"Undo {count(n_songs, target)}", icon=":material/undo:", key=f"{target}s_back",
            on_click=_undo, args=(snapshot.library, target, accepted[1]),
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        choices = st.container(width="content"), st.container(width=320)
    model_id, by = snapshot.record.id if snapshot.record else None, _BY[target].get()
    result = None
    try:
        result = _guesses(snapshot.library.folder, snapshot.revision, model_id, target, by, snapshot)
    except MusicsimError as error:  # codes cannot be learned
        st.info(plain(str(error)), icon=":material/info:")
    if result is None or result.guesses:
        choices[0].segmented_control(
            "Guess from", VOTERS, required=True, **_BY[target].widget(), format_func=_VOTER_LABELS.__getitem__,
            help=_CODES_HELP,
        )  # fmt: skip
    if result is None:
        return
    if not result.guesses:
        st.caption(result.summary(USUAL_VOTES[target]))
        return
    min_votes = choices[1].slider("Minimum votes", 1, N_VOTES[target], USUAL_VOTES[target], key=f"{target}s_votes")
    voters = "songs with the nearest learned codes" if by == "codes" else "most similar songs"
    st.caption(f"The {N_VOTES[target]} {voters} vote. {result.summary(min_votes)}")
    _draw_table(snapshot, target, result, min_votes)


def _draw_table(snapshot: Snapshot, target: str, result: Guesses, min_votes: int) -> None:
    guesses = result.select(min_votes)
    actions = st.container(horizontal=True, vertical_alignment="center")
    # each list of songs has its own key, because row numbers would otherwise stay selected for different songs
    songs = hash((snapshot.library.name, *(guess.song.id for guess in guesses)))
    selected = st.dataframe(
        _table(guesses, min_votes), hide_index=True, key=f"library_{target}s_{songs}", on_select="rerun",
        selection_mode="multi-row",
    ).selection.rows  # fmt: skip
    can_accept_all = result.can_accept_all(min_votes)
    chosen = pick_rows(selected, guesses) if can_accept_all or selected else []
    with actions:
        st.button(
            f"Accept {len(chosen):,}", icon=":material/check:", key=f"{target}s_accept",
            **off_if(not chosen, "Select rows in the table first."),
            on_click=_accept, args=(snapshot.library, target, chosen, min_votes),
        )  # fmt: skip
        table_download(f"guessed {target}s", lambda: _table(guesses, min_votes), f"{target}s_file")
        st.caption(
            "Select rows to accept only those; without a selection, the button accepts all. The files do not change."
            if can_accept_all
            else f"Select rows to accept them. You can accept all of them together if at least {MIN_RIGHT:.0%} of "
            "guesses like these are right. The files do not change."
        )


def _table(guesses: Sequence[Guess], min_votes: int) -> pd.DataFrame:
    new_tags = [guess.new_tags(min_votes) for guess in guesses]
    tags = [tag for tag in ("genre", "artist", "album") if any(tag in new for new in new_tags)]
    votes = [[n for n in guess.votes if n >= min_votes] for guess in guesses]
    return pd.DataFrame(
        {
            "title": [clean(guess.song.title) for guess in guesses],
            "by": [clean(guess.song.by) for guess in guesses],
            **{tag: [clean(new.get(tag, "")) for new in new_tags] for tag in tags},
            "votes": [f"{', '.join(map(str, n))} of {guess.n_voters}" for n, guess in zip(votes, guesses, strict=True)],
        }
    )


def draw_artists(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw guesses of missing artists, if the owner has turned them on."""
    st.header("Songs without an artist", anchor=False)
    if st.toggle(
        "Guess artists from similar songs",
        key="guess_artists",
        help="Most of these guesses are wrong, because songs by different artists can also sound alike.",
    ):
        _draw_guesses(snapshot, "artist")


def draw_genres(snapshot: Snapshot, *, busy: bool) -> None:
    st.header("Songs without a genre", anchor=False)
    _draw_guesses(snapshot, "genre")
