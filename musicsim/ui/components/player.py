"""The one music player at the bottom of every page.

The queue and the sound live in the browser (``assets/player_engine.js``), outside of what Streamlit
renders: a rerun, a switch of pages or a stopped script does not touch them, and moving through the
queue costs no rerun. Python only sends *commands* (play, enqueue), each with a serial
number, and receives *events* (a title clicked, a thumb, "more like this").

A command reaches the browser twice: with the next :func:`mount`, and at once through a *courier*, a
second, invisible component in a slot that :func:`mount` leaves behind. The courier is what makes
:func:`play` work after the player was mounted in the same run, and inside of fragments, which do not
run the shell. The browser carries out each serial number once.
"""

import logging
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from musicsim.ui.base.asset import asset
from musicsim.ui.base.keys import Key

logger = logging.getLogger(__name__)

EventKind = Literal["open", "thumb", "more_like_this"]
"""What a listener may ask of the program: show the song, store an opinion, find its like."""

_MOUNT_KEY = "musicsim-player"
_COURIER_KEY = "musicsim-player-courier"

# A command rides along with every run until this long after it was first sent: long enough for
# runs that overtake each other, short enough that a queue of thousands is not sent for ever.
_RESEND_S = 30.0


@dataclass(frozen=True, slots=True)
class Track:
    """One song as the player needs it.

    Parameters
    ----------
    song_id : int
        Comes back in every event; 0 for sound that is no song of a library, of which there are none.
    title, artist : str
        Shown as plain text, whatever they hold.
    url : str
        Where the sound is, with HTTP range requests. A path from the root (``/songs/12/audio``) is
        taken from where the app is served, so it needs no base path.
    peaks_url : str
        Where a JSON list of floats in [0, 1] is, the waveform; empty for a plain seek bar.
    duration_s : float or None
        Shown until the browser knows better.
    start_s : float
        Where it starts to play; "previous" goes back to its beginning.
    cover_url : str
        Where its picture is; empty for none.
    loudness : float or None
        LUFS, by which songs are made as loud as each other; None plays it as it is.
    is_blind : bool
        Whether nobody is to know which song it is: the player neither shows it, nor keeps it, nor goes on from it.
    reason : str
        Why it follows the song before, where the listener did not choose it.

    Raises
    ------
    ValueError
        If `url` is empty.
    """

    song_id: int
    title: str
    artist: str
    url: str
    peaks_url: str = ""
    duration_s: float | None = None
    start_s: float = 0.0
    cover_url: str = ""
    loudness: float | None = None
    is_blind: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.url:
            raise ValueError(f"track {self.song_id} ({self.title!r}) has no url; give the address of its sound")


@dataclass(frozen=True, slots=True)
class PlayerEvent:
    """Something the listener did in the player."""

    kind: EventKind
    song_id: int
    value: int = 0  # for "thumb" +1 (up), -1 (down) or 0 (taken back); 0 otherwise


@dataclass(slots=True)
class _Command:
    payload: dict[str, Any]
    sent_at: float | None = None


@dataclass(slots=True)
class _Link:
    """One browser session's side of the conversation with its player."""

    session: str = field(default_factory=lambda: uuid.uuid4().hex)
    serial: int = 0
    acked: int = 0
    commands: list[_Command] = field(default_factory=list)
    slot: DeltaGenerator | None = None
    on_event: Callable[[PlayerEvent], None] | None = None

    def push(self, kind: str, tracks: Sequence[Track], start: int = 0) -> None:
        self.serial += 1
        payload = {"serial": self.serial, "kind": kind, "start": start, "tracks": [as_json(t) for t in tracks]}
        self.commands.append(_Command(payload))

    def data(self, role: str) -> dict[str, Any]:
        """What is sent to the browser; marks the commands in it as sent."""
        now = time.monotonic()
        self.commands = [c for c in self.commands if c.sent_at is None or now - c.sent_at < _RESEND_S]
        for command in self.commands:
            command.sent_at = now if command.sent_at is None else command.sent_at
        return {
            "role": role,
            "session": self.session,
            "acked": self.acked,
            "commands": [command.payload for command in self.commands],
        }


def as_json(track: Track) -> dict[str, Any]:
    """A track as JSON can carry it: numbers may come from numpy, and may be nan."""
    numbers = {name: _finite(getattr(track, name)) for name in ("duration_s", "loudness")}
    return asdict(track) | {"song_id": int(track.song_id)} | numbers


def _finite(number: float | None) -> float | None:
    return float(number) if number is not None and math.isfinite(number) else None


_LINK = Key("player.link", _Link, "commands on their way to the player, and events already handled")


def play(tracks: Sequence[Track], start: int = 0) -> None:
    """Replace the queue and start at once.

    Works in a callback, in a page's body, before ``st.rerun()`` and inside of fragments.

    Parameters
    ----------
    tracks : sequence of Track, not empty
    start : int, 0 <= start < len(tracks)

    Raises
    ------
    ValueError
        If `tracks` is empty or `start` is out of range.
    """
    tracks = _checked(tracks)
    if not 0 <= start < len(tracks):
        raise ValueError(f"start={start} should be in 0..{len(tracks) - 1}: there are {len(tracks)} tracks")
    link = _LINK.get()
    link.commands.clear()  # whatever was to be queued before is replaced
    link.push("play", tracks, start)
    _deliver(link)


def enqueue(tracks: Sequence[Track]) -> None:
    """Append to the queue; the player says so in a toast above itself.

    An empty queue shows the first track, ready to play.

    Parameters
    ----------
    tracks : sequence of Track, not empty

    Raises
    ------
    ValueError
        If `tracks` is empty.
    """
    tracks = _checked(tracks)
    link = _LINK.get()
    link.push("enqueue", tracks)
    _deliver(link)


def mount(
    *, on_event: Callable[[PlayerEvent], None] | None = None, thumbs: Mapping[int, int] | None = None, radio: str = ""
) -> None:
    """Show the player; once in a script run, by the shell, inside ``with st.bottom:``.

    Call it before the page runs: a page that ends with ``st.stop()`` ends the shell, too.

    Parameters
    ----------
    on_event : callable of one PlayerEvent, optional
        Called as a widget's callback, that is before the next run of the script; it may change
        the session, call :func:`play` or ``st.switch_page``.
    thumbs : mapping of song_id to -1, 0 or 1, optional
        Opinions on the songs that may be in the queue; songs left out count as 0. ``None`` leaves it to the
        browser to remember what was clicked.
    radio : str
        Where the browser asks for the tracks that follow the last one, if the listener wants the music to go on: a
        path from the root, to which the parameters ``song`` and ``lately`` are added.
    """
    link = _LINK.get()
    link.on_event = on_event
    data = link.data("player")
    data["radio"] = radio
    data["thumbs"] = None if thumbs is None else {str(song): int(value) for song, value in thumbs.items()}
    _component("musicsim_player", with_view=True)(key=_MOUNT_KEY, data=data, height="content", on_event_change=_receive)
    link.slot = st.empty()


def _checked(tracks: Sequence[Track]) -> list[Track]:
    if not tracks:
        raise ValueError("no tracks were given; disable the button while there is nothing to play")
    return list(tracks)


def _deliver(link: _Link) -> None:
    """Send the commands without waiting for the next mount, once there has been one."""
    if link.slot is None:
        return
    if _in_fragment_callback():
        st.rerun()  # in a callback this only queues: the whole app runs next, and with it the mount
        return
    # A fragment may only write inside of itself. Elsewhere the slot keeps the page's own elements
    # in their places, so that no chart is drawn again.
    context = get_script_run_ctx()
    in_fragment = context is not None and bool(context.fragment_ids_this_run)
    with nullcontext() if in_fragment else link.slot:
        # The serial in the key: a run may send several, and each has to be a new element.
        _component("musicsim_player_courier", with_view=False)(
            key=f"{_COURIER_KEY}-{link.serial}", data=link.data("courier"), height="content"
        )


def _in_fragment_callback() -> bool:
    """Whether elements written now would land on top of the page (Streamlit warns of it)."""
    context = get_script_run_ctx()
    if context is None or not context.fragment_ids_this_run:
        return False
    try:
        # No public name tells a callback from a fragment's body. Without these two, the courier is
        # written all the same: the song plays, and Streamlit's log holds a warning.
        from streamlit.runtime.scriptrunner_utils.script_run_context import RunLocation, ThreadState
    except ImportError:
        return False
    return ThreadState.get().run_location is RunLocation.CALLBACK


def _component(name: str, *, with_view: bool) -> Callable[..., Any]:
    """Register the component with this process' Streamlit; a repeated registration is free."""
    return st.components.v2.component(
        name,
        html=asset("player.html") if with_view else None,
        css=asset("player.css") if with_view else None,
        js=asset("player_engine.js") + asset("player.js"),
    )


def _receive() -> None:
    """Hand the browser's new events to the shell, each once."""
    link = _LINK.get()
    sent = st.session_state[_MOUNT_KEY].get("event")
    for item in sent if isinstance(sent, list) else []:
        number, event = _parse(item)
        if event is None:
            logger.warning("the player sent something that is no event: %r", item)
        elif number > link.acked:
            link.acked = number
            if link.on_event is not None:
                link.on_event(event)


def _parse(item: object) -> tuple[int, PlayerEvent | None]:
    """One event as the browser wrote it; what comes from a browser may be anything."""
    if not isinstance(item, dict):
        return 0, None
    number, kind, song, value = (item.get(name) for name in ("number", "kind", "song_id", "value"))
    whole = all(isinstance(v, int) for v in (number, song, value))
    if not whole or kind not in get_args(EventKind) or value not in (-1, 0, 1):
        return 0, None
    return number, PlayerEvent(kind, song, value)  # type: ignore[arg-type, return-value]
