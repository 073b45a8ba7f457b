"""The listener's changes to the queue, with undo."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from musicsim.explorer.playlists.queue import MAX_CALMER, SURPRISE, Heard, QueueItem
from musicsim.explorer.search.feedback import Thumbs
from musicsim.ui.base.keys import Key

N_SONGS = 20  # number of songs in a new queue
_MORE = 10  # number of songs that are added when few are left
_FEW = 6
_MAX_STEPS = 30  # maximum number of undo steps
_MAX_SURPRISE = 0.9


@dataclass(frozen=True, slots=True)
class ListenState:
    """Changes to the queue of one seed."""

    seed: str = ""  # name of the seed, with its library
    opening: tuple[int, ...] = ()  # ids of the songs that come first
    examples: Mapping[int, int] = field(default_factory=dict, hash=False)  # 1 (like) or -1 (unlike) by song id
    part: tuple[float, float] | None = None  # selected part of the seed, in seconds
    target: int | None = None  # id of the song that the queue leads to
    calmer: int = 0
    surprise: float = SURPRISE
    pins: Mapping[int, int] = field(default_factory=dict, hash=False)  # song ids by position in the queue
    removed: frozenset[int] = frozenset()
    heard: tuple[Heard, ...] = ()
    length: int = N_SONGS
    number: int = field(default_factory=lambda: secrets.randbelow(2**31))  # random seed


LISTEN: Key[ListenState] = Key("listen", ListenState, "the queue's request", per_library=True, is_kept=True)
_BEFORE: Key[tuple[tuple[ListenState, Thumbs | None], ...]] = Key(
    "listen_before", tuple, "earlier requests for the same seed", per_library=True, is_kept=True
)


def state_of(seed: str) -> ListenState:
    """Return the state of a seed; start a new one if the current state belongs to another seed."""
    if LISTEN.get().seed != seed:
        begin(ListenState(seed))
    return LISTEN.get()


def begin(state: ListenState) -> None:
    """Start the queue of another seed."""
    LISTEN.set(state)
    _BEFORE.set(())


def change(thumbs: Thumbs | None = None, **values: object) -> None:
    """Change the queue; if this changes the thumbs, `thumbs` holds the earlier ones."""
    before = LISTEN.get()
    _BEFORE.set((*_BEFORE.get(), (before, thumbs))[-_MAX_STEPS:])
    LISTEN.set(replace(before, **values))  # type: ignore[arg-type]


def can_undo() -> bool:
    """Return True if the queue of this seed has been changed."""
    return bool(_BEFORE.get())


def undo() -> Thumbs | None:
    """Reverse the last change, but keep the songs heard since; if it changed thumbs, return the earlier ones."""
    *rest, (before, thumbs) = _BEFORE.get()
    _BEFORE.set(tuple(rest))
    now = LISTEN.get()
    LISTEN.set(replace(before, heard=now.heard, length=now.length))
    return thumbs


def make_surprising() -> None:
    """Make the queue more surprising."""
    change(surprise=min(_MAX_SURPRISE, round(LISTEN.get().surprise + 0.2, 2)))


def is_most_surprising() -> bool:
    """Return True if the queue cannot become more surprising."""
    return LISTEN.get().surprise >= _MAX_SURPRISE


def make_calmer(step: int) -> None:
    """Make the queue calmer by `step`, or livelier if `step` is negative."""
    calmer = LISTEN.get().calmer
    change(calmer=step if calmer * step < 0 else max(-MAX_CALMER, min(MAX_CALMER, calmer + step)))


def toggle_pin(song_id: int, place: int) -> None:
    """Pin a song to its place, or unpin it."""
    pins = LISTEN.get().pins
    others = {at: i for at, i in pins.items() if i != song_id}
    change(pins=others if len(others) < len(pins) else {**others, place: song_id})


def remove(song_id: int) -> None:
    """Remove a song from the queue permanently."""
    state = LISTEN.get()
    pins = {place: i for place, i in state.pins.items() if i != song_id}
    change(removed=state.removed | {song_id}, pins=pins)


def note_playing(items: list[QueueItem], place: int) -> None:
    """Keep all songs up to the one that is playing in place, and request more songs if few are left."""
    state = LISTEN.get()
    heard = tuple(Heard(item.song.id, item.reason, item.similarity) for item in items[: place + 1])
    length = state.length + _MORE if len(items) - place <= _FEW else state.length
    LISTEN.set(replace(state, heard=heard, length=max(length, len(heard))))
