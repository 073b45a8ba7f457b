"""A list of songs, each with a cover, a play button, a similarity or length, and actions."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import streamlit as st

from musicsim.explorer.playlists.tracks import cover_address
from musicsim.library import Library, Song
from musicsim.ui.base.keys import read_event
from musicsim.ui.base.openers import active_library
from musicsim.ui.base.scripts import component
from musicsim.wording import clock

ActionKind = Literal[
    "play", "similar", "enqueue", "insert", "move", "drop", "keep", "another", "redraw", "why", "like", "unlike"
]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the list."""

    song_id: int
    title: str
    sub: str
    reason: str
    length: str
    similarity: float | None = None  # from 0 to 1, drawn as a bar; None shows the length instead
    link: str | None = None
    can_explain: bool = False  # True if the row has the button "why"
    is_kept: bool = False  # True if the row's pin is filled
    is_current: bool = False  # True if the song is playing
    judged: int | None = None  # the pressed thumb: 1 (up), -1 (down) or 0 (neither); None hides both thumbs


@dataclass(frozen=True, slots=True)
class Action:
    """An action on the row at `index`; `to` is the new index of a moved row."""

    kind: ActionKind
    index: int
    song_id: int
    to: int = -1


def row_of(song: Song, *, similarity: float | None = None, why: str = "", link: str | None = None) -> Row:
    """Return the row of a song, with artist, genre and year on the second line and the reason `why` on the third."""
    facts = [song.byline, song.genre or "", str(song.year or "")]
    sub = " · ".join(fact for fact in facts if fact)
    return Row(song.id, song.title, sub, why, clock(song.duration_s), similarity, link)


def song_list(
    rows: Sequence[Row], *, key: str, on_action: Callable[[Action], None], editable: bool = False,
    is_queue: bool = False, first: int = 0, not_similar: str = "",
) -> None:  # fmt: skip
    """Show the rows; `key` must be unique on the page, and `on_action` is called as a widget's callback.

    `not_similar` is the reason why the button ≈ is disabled.

    Rows of a queue (`is_queue`) and of an `editable` list have a pin and a menu. Rows of an `editable` list can also be
    moved or replaced, and songs can be inserted after them. Row numbers begin at `first` + 1.
    """

    def receive() -> None:
        action = _parse(read_event(key, "action"), len(rows))
        if action is not None:
            on_action(action)

    component("song_list")(
        key=key, height="content", on_action_change=receive,
        data={
            "rows": [asdict(row) for row in rows], "editable": editable, "queue": is_queue, "first": first,
            "notSimilar": not_similar,
            "covers": cover_address(active_library(), "{}").lstrip("/"),
        },
    )  # fmt: skip


def _parse(sent: Any, n_rows: int) -> Action | None:
    if not isinstance(sent, dict) or sent.get("kind") not in get_args(ActionKind):
        return None
    index, song_id, to = (sent.get(name) for name in ("index", "song_id", "to"))
    if not (isinstance(index, int) and isinstance(song_id, int) and isinstance(to, int)):
        return None
    return Action(sent["kind"], index, song_id, to) if 0 <= index < n_rows and -1 <= to < n_rows else None


def show_cover(library: Library, song: Song) -> None:
    """Show a song's cover in a box of fixed size."""
    address = cover_address(library, song.id).lstrip("/")  # relative URL, so that the app can be served under any path
    st.html(
        f"<div class='song-cover'><i style='background-image: url(&quot;{address}&quot;)'></i></div>", width="content"
    )
