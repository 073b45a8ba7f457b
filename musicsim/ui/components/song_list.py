"""A list of songs, each with a cover, a play button, a similarity or length, and actions.

The browser plays songs, queues them, and starts *Listen* from them; the other actions are for the page.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import streamlit as st

from musicsim.explorer import cover_address
from musicsim.library import Library, Song
from musicsim.ui.base import component
from musicsim.ui.base.keys import read_event
from musicsim.wording import clock

ActionKind = Literal["insert", "move", "drop", "keep", "another", "redraw", "why"]


@dataclass(frozen=True, slots=True)
class SongRow:
    """A row of the list."""

    song_id: int
    title: str
    sub: str
    reason: str
    length: str
    similarity: float | None = None  # from 0 to 1, drawn as a bar; None shows the length instead
    link: str | None = None
    is_kept: bool = False  # True if the row's pin is filled


@dataclass(frozen=True, slots=True)
class Action:
    """An action on the row at `index`; `to` is the new index of a moved row."""

    kind: ActionKind
    index: int
    song_id: int
    to: int = -1


def row_of(song: Song, *, similarity: float | None = None, why: str = "", link: str | None = None) -> SongRow:
    """Return the row of a song, with artist, genre and year on the second line and the reason `why` on the third."""
    facts = [song.byline, song.genre or "", str(song.year or "")]
    sub = " · ".join(fact for fact in facts if fact)
    return SongRow(song.id, song.title, sub, why, clock(song.duration_s), similarity, link)


def show_song_list(
    library: Library, rows: Sequence[SongRow], *, key: str, on_action: Callable[[Action], None] = lambda _: None,
    editable: bool = False, first: int = 0, plays: Sequence[int] = (), not_similar: str = "",
) -> None:  # fmt: skip
    """Show songs of a library; `key` must be unique on the page, and `on_action` is called as a widget's callback.

    `not_similar` is the reason why the button ≈ is disabled.

    Rows of an `editable` list have a pin and a menu. They can be moved or replaced, and songs can be inserted after
    them. Row numbers begin at `first` + 1. A click on a row plays the songs of the list from this row on. If the
    list shows only a part of the songs, `plays` has the ids of all, and the first row is the one at index `first`.
    """

    def receive() -> None:
        action = _parse(read_event(key, "action"), len(rows))
        if action is not None:
            on_action(action)

    component("web/songs/component.js")(
        key=key, height="content", on_action_change=receive,
        data={
            "rows": [asdict(row) for row in rows], "editable": editable, "first": first, "plays": list(plays),
            "notSimilar": not_similar, "library": library.name, "covers": cover_address(library, "{}").lstrip("/"),
        },
    )  # fmt: skip


def _parse(sent: Any, n_rows: int) -> Action | None:
    if not isinstance(sent, dict) or sent.get("kind") not in get_args(ActionKind):
        return None
    index, song_id, to = (sent.get(name) for name in ("index", "song_id", "to"))
    if not (isinstance(index, int) and isinstance(song_id, int) and isinstance(to, int)):
        return None
    return Action(sent["kind"], index, song_id, to) if 0 <= index < n_rows and -1 <= to < n_rows else None


def show_cover(library: Library, song_id: int | None) -> None:
    """Show a song's cover in a box of fixed size; without a song, the box has a note."""
    picture = ""
    if song_id is not None:
        address = cover_address(library, song_id).lstrip("/")  # relative, so that the app can be served under any path
        picture = f"<i style='background-image: url(&quot;{address}&quot;)'></i>"
    st.html(f"<div class='song-cover'>{picture}</div>", width="content")
