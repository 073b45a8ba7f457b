"""Labels that songs are without, guessed from songs like them: some or all can be accepted, and taken back."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.guess import N_VOTES, USUAL_VOTES, VOTERS, Guess, Guesses, guess_labels
from musicsim.explorer.snapshot import Snapshot
from musicsim.library import Library
from musicsim.ui.review import chosen_or_all
from musicsim.ui.state import Key
from musicsim.ui.text import plain, shown

__all__ = ["guesses_review"]

_VOTERS_SAID = {"vectors": "Nearest songs", "codes": "Learned codes"}
_CODES_HELP = (
    "Learned codes: some seconds are spent on learning what tells your labels apart; the songs whose codes are nearest "
    "vote then. Take what is right more often."
)


@dataclass(frozen=True, slots=True)
class _Accepted:
    """What was last entered: the tags it was about, and what the songs had instead, by song id."""

    library: str
    tags: tuple[str, ...]
    earlier: dict[int, dict[str, Any]]


_ACCEPTED: dict[str, Key[_Accepted | None]] = {
    target: Key(f"{target}s_accepted", lambda: None, f"the guesses of {target}s that were last accepted")
    for target in ("genre", "artist")
}


@st.cache_data(max_entries=8, show_spinner="Asking the songs that are like them…")
def _guesses(
    folder: Path, revision: int, model_id: str | None, target: str, by: str, _snapshot: Snapshot
) -> Guesses:
    return guess_labels(_snapshot, target, by=by)


def _accept(library: Library, target: str, guesses: Sequence[Guess], least: int) -> None:
    entered = {guess.song.id: guess.entered(least) for guess in guesses}
    tags = tuple(sorted({tag for found in entered.values() for tag in found}))
    earlier = library.edits.replace(tags, entered)
    _ACCEPTED[target].set(_Accepted(library.name, tags, earlier))


def _take_back(library: Library, target: str, accepted: _Accepted) -> None:
    library.edits.replace(accepted.tags, accepted.earlier)
    _ACCEPTED[target].set(None)


def guesses_review(now: Snapshot, target: str) -> None:
    """Songs without a genre or an artist, each with what songs near it say."""
    if not now.n_indexed:
        st.caption("No song has been compared with others yet.")
        return
    accepted = _ACCEPTED[target].get()
    if accepted is not None and accepted.library == now.library.name:
        st.button(
            f"Take {len(accepted.earlier):,} {target}s back", icon=":material/undo:", key=f"{target}s_back",
            on_click=_take_back, args=(now.library, target, accepted),
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        choices = st.container(width="content"), st.container(width=320)
    found = _found(now, target, choices[0])
    if found is None:
        return
    if not found.guesses:
        st.caption(
            f"Every song has {_a(target)}."
            if found.n_known
            else f"No song has {_a(target)}: there is nothing to guess from."
        )
        return
    least = choices[1].slider(
        "Votes at least", 1, N_VOTES[target], USUAL_VOTES[target], key=f"{target}s_votes"
    )
    kept = [guess for guess in found.guesses if guess.votes[0] >= least]
    st.caption(f"{_who(target)} {_summary(found, kept, least, target)}")
    actions = st.container(horizontal=True, vertical_alignment="center")
    marked = st.dataframe(
        _table(kept, least), hide_index=True, key=f"library_{target}s", on_select="rerun",
        selection_mode="multi-row",
    )  # fmt: skip
    chosen = chosen_or_all(marked.selection.rows, kept)
    with actions:
        st.button(
            f"Accept {len(chosen):,}", icon=":material/check:", disabled=not chosen, key=f"{target}s_accept",
            on_click=_accept, args=(now.library, target, chosen, least),
        )  # fmt: skip
        st.caption("Mark rows to choose; without marks the button means all. The files stay as they are.")


def _found(now: Snapshot, target: str, place: Any) -> Guesses | None:
    """The guesses of who is chosen to vote; None, said in the page, where codes cannot be learned."""
    asked = now.library.folder, now.revision, now.record.id if now.record else None, target
    found = _guesses(*asked, "vectors", now)
    if not found.guesses:
        return found
    by = place.segmented_control(
        "Who votes", VOTERS, default=VOTERS[0], required=True, key=f"{target}s_by",
        format_func=_VOTERS_SAID.__getitem__, help=_CODES_HELP,
    )  # fmt: skip
    try:
        return _guesses(*asked, by, now)
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
            "votes": [
                f"{', '.join(map(str, n))} of {g.n_voters}" for n, g in zip(votes, guesses, strict=True)
            ],
        }
    )


def _who(target: str) -> str:
    if st.session_state[f"{target}s_by"] == "codes":
        return f"The {N_VOTES[target]} songs whose learned codes are nearest to that of a song vote."
    return f"The {N_VOTES[target]} songs that sound most like a song vote."


def _summary(found: Guesses, kept: Sequence[Guess], least: int, target: str) -> str:
    n_all = len(found.guesses)
    words = f"{len(kept):,} of {n_all:,} songs without {_a(target)} have one that at least {least} vote for."
    if least not in found.right:
        return f"{words} No song with {_a(target)} has so many votes that this could be checked."
    right = f"Of {found.n_judged:,} songs whose {target} is known, {found.right[least]:.0%} of such guesses are right."
    if found.right_apart is None:
        return f"{words} {right}"
    alike = {"genre": "artist", "artist": "album"}[target]
    return (
        f"{words} {right} Where songs of the same {alike} may not vote, {found.right_apart:.0%} of all are."
    )


def _a(target: str) -> str:
    return "an artist" if target == "artist" else "a genre"
