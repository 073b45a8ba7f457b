"""The music player at the bottom of every page.

The queue and the sound are in the browser (``assets/player_engine.js``), outside the elements that Streamlit renders.
Reruns, page switches and stopped scripts do not affect them, and skipping songs does not cause a rerun. Python sends
*commands* (play, enqueue) with serial numbers, and receives *events* (click on a title, thumb, "more like this").

A command reaches the browser in two ways: with the next :func:`mount`, and immediately through a *courier*, a second,
invisible component in a slot that :func:`mount` creates. The courier is needed after the player is mounted in the same
run, and in fragments, which do not run the shell. A courier is lost if its fragment runs again before the browser shows
it; :func:`note_song` then delivers its commands. The browser executes each serial number once.
"""

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from musicsim.explorer.playlists.tracks import Track, render_track
from musicsim.ui.base.keys import Key, read_event
from musicsim.ui.base.scripts import component

logger = logging.getLogger(__name__)

EventKind = Literal["open", "thumb", "more_like_this"]
"""Player actions that Python handles: show the song, store a thumb, search with the song."""

_MOUNT_KEY = "musicsim-player"
_NOTE_KEY = "musicsim-player-note"
_COURIER_KEY = "musicsim-player-courier"
# Every run sends recent commands again, because runs can overtake each other. Without this limit, a queue of thousands
# of songs would be sent forever.
_RESEND_S = 30.0


@dataclass(frozen=True, slots=True)
class PlayerEvent:
    """A listener's action in the player."""

    kind: EventKind
    song_id: int
    value: int = 0  # for a "thumb" event: 1 (up), -1 (down) or 0 (released); 0 for other events


@dataclass(slots=True)
class _Command:
    payload: dict[str, Any]
    sent_at: float | None = None


@dataclass(slots=True)
class _Link:
    """The connection between a browser session and its player."""

    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    serial: int = 0
    acked: int = 0
    commands: list[_Command] = field(default_factory=list)
    slot: DeltaGenerator | None = None
    on_event: Callable[[PlayerEvent], None] | None = None

    def push(self, kind: str, tracks: Sequence[Track], start: int = 0) -> None:
        # a new queue replaces all earlier commands, and an updated one replaces earlier updates
        replaced = {"play": ("play", "enqueue", "follow"), "follow": ("follow",)}.get(kind, ())
        self.commands = [command for command in self.commands if command.payload["kind"] not in replaced]
        self.serial += 1
        payload = {"serial": self.serial, "kind": kind, "start": start, "tracks": [render_track(t) for t in tracks]}
        self.commands.append(_Command(payload))

    def data(self, role: str) -> dict[str, Any]:
        """Return the data for the browser, and mark its commands as sent."""
        now = time.monotonic()
        self.commands = [c for c in self.commands if c.sent_at is None or now - c.sent_at < _RESEND_S]
        for command in self.commands:
            command.sent_at = now if command.sent_at is None else command.sent_at
        commands = [command.payload for command in self.commands]
        return {"role": role, "session": self.session, "acked": self.acked, "commands": commands}


_LINK = Key("player.link", _Link, "commands on their way to the player, and events already handled")


def play(tracks: Sequence[Track], start: int = 0) -> None:
    """Replace the queue and play from the track at index `start`.

    Works in a callback, in a page's body, before ``st.rerun()`` and inside fragments. Raises ValueError if `tracks` is
    empty or `start` is out of range.
    """
    _check_not_empty(tracks)
    if not 0 <= start < len(tracks):
        raise ValueError(f"start={start} must be from 0 to {len(tracks) - 1}: there are {len(tracks)} tracks")
    _send("play", tracks, start)


def enqueue(tracks: Sequence[Track]) -> None:
    """Append tracks to the queue, without playing; raise ValueError for an empty list."""
    _check_not_empty(tracks)
    _send("enqueue", tracks)


def follow(tracks: Sequence[Track], n_before: int) -> None:
    """Replace the queue without interrupting the song that is playing, which keeps its place among `tracks`.

    If it is not among them, the first `n_before` tracks count as played, and the others come after it.
    """
    _send("follow", tracks, n_before)


def note_song(known: int | None, on_song: Callable[[int], None]) -> None:
    """Call `on_song`, and rerun this page or fragment, when the player starts a song other than `known`.

    It also sends recent commands again, in case the previous run of a fragment was replaced before they arrived.
    """

    def receive() -> None:
        sent = read_event(_NOTE_KEY, "song")
        if isinstance(sent, int):
            on_song(sent)

    data = {"known": known, "resent": _LINK.get().data("courier")}
    component("note_song")(key=_NOTE_KEY, data=data, height="content", on_song_change=receive)


def mount(
    *, on_event: Callable[[PlayerEvent], None] | None = None, thumbs: Mapping[int, int], radio: str = "",
    plays: str = "",
) -> None:  # fmt: skip
    """Show the player; the shell calls this once per script run, inside ``with st.bottom:``.

    Call it before the page runs, because a page that calls ``st.stop()`` also ends the shell. `on_event` is called as a
    widget's callback, before the next run of the script; it may change the session, or call :func:`play` or
    ``st.switch_page``. `thumbs` maps song ids to -1, 0 or 1. `radio` is the address of the tracks that continue the
    queue; the browser adds the parameters ``song`` and ``lately``. `plays` is the address for reports of plays and
    skips; if it is empty, none are reported.
    """
    link = _LINK.get()
    link.on_event = on_event
    data = link.data("player")
    data["radio"], data["plays"] = radio, plays
    data["thumbs"] = {str(song): int(value) for song, value in thumbs.items()}
    component("player")(key=_MOUNT_KEY, data=data, height="content", on_event_change=_receive)
    link.slot = st.empty()


def _check_not_empty(tracks: Sequence[Track]) -> None:
    if not tracks:
        raise ValueError("no tracks were given; disable the button while there is nothing to play")


def _send(kind: str, tracks: Sequence[Track], start: int = 0) -> None:
    """Send a command; if the player is mounted, send it immediately."""
    link = _LINK.get()
    link.push(kind, tracks, start)
    if link.slot is None:
        return
    if _is_fragment_callback():
        st.rerun()  # in a callback, this only queues a run of the whole app, which mounts the player
        return
    # A fragment can write only inside itself. Elsewhere, the slot keeps the page's own elements in place, so that
    # charts are not drawn again.
    context = get_script_run_ctx()
    in_fragment = context is not None and bool(context.fragment_ids_this_run)
    with nullcontext() if in_fragment else link.slot:
        # a run may send several commands; the serial number in the key makes each a new element
        component("player")(key=f"{_COURIER_KEY}-{link.serial}", data=link.data("courier"), height="content")


def _is_fragment_callback() -> bool:
    """Return True if new elements would appear at the top of the page; Streamlit warns about such elements."""
    context = get_script_run_ctx()
    if context is None or not context.fragment_ids_this_run:
        return False
    try:
        # No public name distinguishes a callback from a fragment's body. Without these private names, the courier is
        # written anyway: the song plays, and Streamlit logs a warning.
        from streamlit.runtime.scriptrunner_utils.script_run_context import RunLocation, ThreadState
    except ImportError:
        return False
    return ThreadState.get().run_location is RunLocation.CALLBACK


def _receive() -> None:
    """Pass each new event from the browser to the shell once."""
    link = _LINK.get()
    sent = read_event(_MOUNT_KEY, "event")
    for item in sent if isinstance(sent, list) else []:
        number, event = _parse(item)
        if event is None:
            logger.warning("the player sent an invalid event: %r", item)
        elif number > link.acked:
            link.acked = number
            if link.on_event is not None:
                link.on_event(event)


def _parse(item: object) -> tuple[int, PlayerEvent | None]:
    """Return the number and event sent by the browser; the event is None if it is invalid."""
    if not isinstance(item, dict):
        return 0, None
    number, kind, song, value = (item.get(name) for name in ("number", "kind", "song_id", "value"))
    are_integers = all(isinstance(v, int) for v in (number, song, value))
    if not are_integers or kind not in get_args(EventKind) or value not in (-1, 0, 1):
        return 0, None
    return number, PlayerEvent(kind, song, value)  # type: ignore[arg-type, return-value]
