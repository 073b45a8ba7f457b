"""The playlist in work, and the way back to how it was: every change makes a new draft."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

from musicsim.explorer.playlists.walk import DrawnPlaylist, Edge
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.ui.base.keys import LIBRARY, Key

_MAX_STEPS = 60


@dataclass(frozen=True, slots=True)
class PlaylistDraft:
    """A playlist as it stands."""

    song_ids: tuple[int, ...]
    # mapping of (song id, next song id) to Edge: edges the walk took, also of pairs that no longer follow
    # each other: a song that is moved back has its reason again
    taken: Mapping[tuple[int, int], Edge] = field(default_factory=dict, hash=False)
    kept: frozenset[int] = frozenset()  # ids of songs that stay where they are when the list is drawn again
    notes: tuple[str, ...] = ()  # what of the request could not be met
    seed: int | None = None  # None for a list that was opened, not drawn
    request: "PlaylistRequest | None" = field(default=None, hash=False)  # what it was drawn for
    dialect: str | None = None  # whose walk says what is likely
    saved_id: int | None = None  # the playlist of the library that it is, until it is changed
    # ids of songs that were passed over, since they are missing or cannot be compared
    absent: tuple[int, ...] = ()

    @classmethod
    def of(cls, drawn: "DrawnPlaylist", request: "PlaylistRequest", seed: int) -> Self:
        """A draft of a list that was just drawn."""
        ids = tuple(song.id for song in drawn.songs)
        return cls(ids, _taken(drawn), frozenset(), drawn.notes, seed, request, request.dialect)

    @classmethod
    def opened(cls, playlist: SavedPlaylist, now: Snapshot) -> "PlaylistDraft":
        """A draft of a playlist of the library, with the reasons that were saved with it."""
        details = playlist.details or {}
        notes, dialect, kept = (details.get(name) for name in ("notes", "dialect", "kept"))
        seed = details.get("seed")
        draft = cls(
            playlist.song_ids,
            _taken_of(details.get("taken")),
            frozenset(i for i in kept if isinstance(i, int)) if isinstance(kept, list) else frozenset(),
            tuple(str(note) for note in notes) if isinstance(notes, list) else (),
            seed if isinstance(seed, int) else None,
            dialect=dialect if isinstance(dialect, str) else None,
            saved_id=playlist.id,
        )
        return draft.present(now)

    def details(self) -> dict[str, Any]:
        """What is saved with the songs: :meth:`opened` reads it."""
        steps = [(pair, self.taken[pair]) for pair in pairwise(self.song_ids) if pair in self.taken]
        return {
            "taken": [[*pair, edge.reason, edge.probability] for pair, edge in steps],
            "seed": self.seed,
            "dialect": self.dialect,
            "notes": list(self.notes),
            "kept": [i for i in self.song_ids if i in self.kept],
        }

    def redrawn(self, drawn: DrawnPlaylist, dialect: str | None, seed: int) -> "PlaylistDraft":
        """The list drawn again in part; pairs that still follow each other keep their edges."""
        ids = tuple(song.id for song in drawn.songs)
        return replace(
            self, song_ids=ids, taken=_taken(drawn) | dict(self.taken), kept=self.kept & set(ids),
            notes=drawn.notes, seed=seed, dialect=dialect, saved_id=None,
        )  # fmt: skip

    def moved(self, index: int, to: int) -> "PlaylistDraft":
        """With the song at `index` at the place `to`."""
        ids = list(self.song_ids)
        ids.insert(to, ids.pop(index))
        return replace(self, song_ids=tuple(ids), saved_id=None)

    def inserted(self, index: int, song_ids: Sequence[int]) -> "PlaylistDraft":
        """With songs before the place `index`; those that were in the list before come from where they were."""
        new = list(dict.fromkeys(song_ids))
        before, after = ([i for i in part if i not in new] for part in (self.song_ids[:index], self.song_ids[index:]))
        return replace(self, song_ids=(*before, *new, *after), saved_id=None)

    def without_repeats(self, same: Sequence[int]) -> "PlaylistDraft":
        """Without songs that have come before, by a number for each place that is the same of the same songs."""
        first = {number: place for place, number in reversed(list(enumerate(same)))}
        ids = tuple(self.song_ids[place] for place in sorted(first.values()))
        return replace(self, song_ids=ids, kept=self.kept & set(ids), saved_id=None)

    def dropped(self, index: int) -> "PlaylistDraft":
        """Without the song at `index`."""
        ids = (*self.song_ids[:index], *self.song_ids[index + 1 :])
        return replace(self, song_ids=ids, kept=self.kept & set(ids), saved_id=None)

    def toggled(self, song_id: int) -> "PlaylistDraft":
        """With a song kept where it stands, or no longer kept."""
        return replace(self, kept=self.kept ^ {song_id})

    def present(self, now: Snapshot) -> "PlaylistDraft":
        """Without songs that have gone; a copy is the song that stands for it."""
        ids = present_ids(now, self.song_ids)
        if ids == self.song_ids:
            return self
        rows = now.rows_of(self.song_ids)
        absent = tuple(i for i, row in zip(self.song_ids, rows, strict=True) if row < 0)
        return replace(self, song_ids=ids, kept=self.kept & set(ids), absent=(*self.absent, *absent))


PLAYLIST: Key[PlaylistDraft | None] = Key(
    "playlist", lambda: None, "the playlist in work", per_library=True, is_kept=True
)


def present_ids(now: Snapshot, ids: Sequence[int]) -> tuple[int, ...]:
    """The songs that are here and can be compared."""
    rows = now.rows_of(ids)
    return tuple(now.row_ids[rows[rows >= 0]].tolist())


def _taken(drawn: DrawnPlaylist) -> dict[tuple[int, int], Edge]:
    pairs = pairwise(song.id for song in drawn.songs)
    return {pair: edge for pair, edge in zip(pairs, drawn.edges[1:], strict=True) if edge is not None}


def _taken_of(written: Any) -> dict[tuple[int, int], Edge]:
    """Edges as :meth:`PlaylistDraft.details` wrote them; what another program wrote may be anything."""
    found = {}
    for step in written if isinstance(written, list) else []:
        if not isinstance(step, list) or len(step) != 4:
            continue
        here, there, reason, probability = step
        if isinstance(here, int) and isinstance(there, int) and isinstance(probability, int | float):
            found[here, there] = Edge(str(reason), float(probability))
    return found


# --- the way back ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _History:
    drafts: tuple[PlaylistDraft, ...] = ()
    at: int = -1


_HISTORIES: Key[dict[str, _History]] = Key(
    "playlist_histories", dict, "drafts of this session by the name of their library", is_kept=True
)


def _history() -> _History:
    return _HISTORIES.get().get(LIBRARY.get(), _History())


def _keep(history: _History) -> None:
    _HISTORIES.set(_HISTORIES.get() | {LIBRARY.get(): history})


def change(draft: PlaylistDraft) -> None:
    """Make this the playlist in work; :func:`undo` leads back to the one before."""
    history = _history()
    drafts = (*history.drafts[: history.at + 1], draft)[-_MAX_STEPS:]
    _keep(_History(drafts, len(drafts) - 1))
    PLAYLIST.set(draft)


def amend(draft: PlaylistDraft) -> None:
    """Replace the playlist in work by one with the same songs, without a step to undo."""
    history = _history()
    if history.drafts and PLAYLIST.get() is not None:
        drafts = (*history.drafts[: history.at], draft, *history.drafts[history.at + 1 :])
        _keep(_History(drafts, history.at))
    PLAYLIST.set(draft)


def can_undo() -> bool:
    """Whether there is a draft before this one."""
    history = _history()
    return history.at > 0 or (PLAYLIST.get() is None and bool(history.drafts))


def can_redo() -> bool:
    """Whether a change was undone."""
    history = _history()
    return PLAYLIST.get() is not None and history.at < len(history.drafts) - 1


def undo() -> None:
    """Go back to the draft before; after a page has laid the playlist aside, to that one."""
    if can_undo():
        _step(-1 if PLAYLIST.get() is not None else 0)


def redo() -> None:
    """Do again what was undone."""
    if can_redo():
        _step(1)


def _step(n: int) -> None:
    history = _history()
    _keep(replace(history, at=history.at + n))
    PLAYLIST.set(history.drafts[history.at + n])
