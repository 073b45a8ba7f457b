"""The listener's changes to the queue, with undo."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from musicsim.explorer.playlists.queue import SURPRISE, Heard, QueueItem
from musicsim.explorer.search.feedback import Thumbs
from musicsim.ui.base.keys import Key

N_SONGS = 20  # of a new queue
_MORE = 10  # songs that are added when few are left
_FEW = 6
_MAX_STEPS = 30  # of undo
_MAX_SURPRISE = 0.9
MAX_CALMER = 4


@dataclass(frozen=True, slots=True)
class ListenState:
    """Changes to the queue of one seed."""

    seed: str = ""  # name of the seed, with its library
    opening: tuple[int, ...] = ()  # ids of named songs that come first
    examples: Mapping[int, int] = field(default_factory=dict, hash=False)  # 1 (like) or -1 (unlike) by song id
    part: tuple[float, float] | None = None  # seconds of the seed
    target: int | None = None  # id of the song that the queue leads to
    calmer: int = 0
    surprise: float = SURPRISE
    pins: Mapping[int, int] = field(default_factory=dict, hash=False)  # song ids by place
    removed: frozenset[int] = frozenset()
    heard: tuple[Heard, ...] = ()
    length: int = N_SONGS
    number: int = field(default_factory=lambda: secrets.randbelow(2**31))  # the seed of random choices


LISTEN: Key[ListenState] = Key("listen", ListenState, "the queue's request", per_library=True, is_kept=True)
_BEFORE: Key[tuple[tuple[ListenState, Thumbs | None], ...]] = Key(
    "listen_before", tuple, "earlier requests for the same seed", per_library=True, is_kept=True
)


def state_of(seed: str) -> ListenState:
    """Return the state of a seed; a new one if the last state was about another seed."""
    if LISTEN.get().seed != seed:
        begin(ListenState(seed))
    return LISTEN.get()


def begin(state: ListenState) -> None:
    """Start the queue of another seed."""
    LISTEN.set(state)
    _BEFORE.set(())


def change(thumbs: Thumbs | None = None, **values: object) -> None:
    """Change the queue; `thumbs` are those before the change, if it changes thumbs."""
    before = LISTEN.get()
    _BEFORE.set((*_BEFORE.get(), (before, thumbs))[-_MAX_STEPS:])
    LISTEN.set(replace(before, **values))  # type: ignore[arg-type]


def can_undo() -> bool:
    """Return True if the queue of this seed was changed."""
    return bool(_BEFORE.get())


def undo() -> Thumbs | None:
    """Reverse the last change, but keep the songs heard since; return the thumbs to restore, if it changed them."""
    *rest, (before, thumbs) = _BEFORE.get()
    _BEFORE.set(tuple(rest))
    now = LISTEN.get()
    LISTEN.set(replace(before, heard=now.heard, length=now.length))
    return thumbs


def make_surprising() -> None:
    """Make the queue more surprising; callbacks of chips."""
    change(surprise=min(_MAX_SURPRISE, round(LISTEN.get().surprise + 0.2, 2)))


def is_most_surprising() -> bool:
    """Return True if the queue cannot surprise more."""
    return LISTEN.get().surprise >= _MAX_SURPRISE


def make_calmer(step: int) -> None:
    """Make the queue calmer by a step, or livelier by a negative one."""
    calmer = LISTEN.get().calmer
    change(calmer=step if calmer * step < 0 else max(-MAX_CALMER, min(MAX_CALMER, calmer + step)))


def toggle_pin(song_id: int, place: int) -> None:
    """Pin a song to its place, or let it go."""
    pins = LISTEN.get().pins
    others = {at: i for at, i in pins.items() if i != song_id}
    change(pins=others if len(others) < len(pins) else {**others, place: song_id})


def remove(song_id: int) -> None:
    """Remove a song, which does not come back."""
    state = LISTEN.get()
    pins = {place: i for place, i in state.pins.items() if i != song_id}
    change(removed=state.removed | {song_id}, pins=pins)


def note_playing(items: list[QueueItem], place: int) -> None:
    """Fix the songs up to the one that is playing, and ask for more songs if few are left."""
    state = LISTEN.get()
    heard = tuple(Heard(item.song.id, item.reason, item.similarity) for item in items[: place + 1])
    length = state.length + _MORE if len(items) - place <= _FEW else state.length
    LISTEN.set(replace(state, heard=heard, length=max(length, len(heard))))
