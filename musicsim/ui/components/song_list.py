"""A list of songs with a play button, a measure and actions on each row: results, neighbours, playlists."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import streamlit as st

from musicsim.explorer.search.query import Hit
from musicsim.library import Song
from musicsim.ui.base.asset import asset
from musicsim.ui.base.openers import active_library
from musicsim.ui.components.cover import cover_address

ActionKind = Literal[
    "play", "similar", "enqueue", "insert", "move", "drop", "keep", "another", "redraw", "why", "like", "unlike"
]


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `similarity` in [0, 1] is drawn as a bar, otherwise the length stands there.

    A row that `can_explain` has a button that asks why the song is here; one that `is_kept` has a filled pin. One
    that is `judged` has two thumbs: 1 and -1 press one of them, 0 neither, None shows none.
    """

    song_id: int
    title: str
    sub: str
    reason: str
    length: str
    similarity: float | None = None
    link: str | None = None
    can_explain: bool = False
    is_kept: bool = False
    judged: int | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What the listener did to the row at `index`; `to` is where a moved row goes."""

    kind: ActionKind
    index: int
    song_id: int
    to: int = -1


def clock(seconds: float) -> str:
    """Minutes and seconds, hours before them where there are some."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def row_of(song: Song, *, similarity: float | None = None, why: str = "", link: str | None = None) -> Row:
    """A row of a song: what is known of it in the second line, why it is here in a third."""
    facts = [song.by, song.genre or "", str(song.year or "")]
    sub = " · ".join(fact for fact in facts if fact)
    return Row(song.id, song.title, sub, why, clock(song.duration_s), similarity, link)


def hit_rows(hits: Sequence[Hit], *, can_explain: bool = False, judged: Mapping[int, int] | None = None) -> list[Row]:
    """Rows of answers: similarity, one short reason, a button for all of them where the page can explain.

    With `judged`, 1 and -1 by song id, rows have thumbs.
    """
    rows = [row_of(hit.song, similarity=hit.similarity, why=hit.reason) for hit in hits]
    return [
        replace(row, can_explain=can_explain, judged=None if judged is None else judged.get(row.song_id, 0))
        for row in rows
    ]


def song_list(
    rows: Sequence[Row],
    *,
    key: str,
    on_action: Callable[[Action], None],
    editable: bool = False,
    scroll_to: bool = False,
) -> None:
    """Show the rows.

    Parameters
    ----------
    key : str
        Unique on the page.
    on_action : callable of one Action
        Called as a widget's callback, before the next run of the page.
    editable : bool
        A playlist: rows can be kept, moved, dropped, and drawn again, and songs added behind them.
    scroll_to : bool
        Bring its first row into view: a list that is new may be drawn below what is seen of the page.
    """

    def receive() -> None:
        action = _parse(st.session_state[key].get("action"), len(rows))
        if action is not None:
            on_action(action)

    component = st.components.v2.component("musicsim_song_list", css=asset("song_list.css"), js=asset("song_list.js"))
    component(
        key=key,
        data={
            "rows": [asdict(row) for row in rows],
            "editable": editable,
            "scroll_to": scroll_to,
            "covers": cover_address(active_library(), "{}").lstrip("/"),
        },
        height="content",
        on_action_change=receive,
    )


def _parse(sent: Any, n_rows: int) -> Action | None:
    """An action as the browser wrote it; None when it is no sensible one."""
    if not isinstance(sent, dict) or sent.get("kind") not in get_args(ActionKind):
        return None
    index, song_id, to = (sent.get(name) for name in ("index", "song_id", "to"))
    if not (isinstance(index, int) and isinstance(song_id, int) and isinstance(to, int)):
        return None
    if not 0 <= index < n_rows or not -1 <= to < n_rows:
        return None
    return Action(sent["kind"], index, song_id, to)
