"""The current playlist as an immutable draft, with undo and redo."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from musicsim.explorer.playlists.walk import Edge, GeneratedPlaylist
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.ui.base.keys import LIBRARY, Key

_MAX_DRAFTS = 60


class _Details(BaseModel):
    """The JSON that is saved with a playlist's songs."""

    # two song ids, reason, probability and label of each step; version 1.0.0 saved no labels
    taken: list[tuple[int, int, str, float, str] | tuple[int, int, str, float]] = []
    seed: int | None = None
    dialect: str | None = None
    notes: tuple[str, ...] = ()
    kept: list[int] = []
    edited: bool = False


@dataclass(frozen=True, slots=True)
class PlaylistDraft:
    """A playlist in progress; its methods return changed copies."""

    song_ids: tuple[int, ...]
    # keyed by (song id, next song id); pairs that are no longer adjacent are kept, so that a song that is moved back
    # gets its reason back
    edges: Mapping[tuple[int, int], Edge] = field(default_factory=dict, hash=False)
    kept: frozenset[int] = frozenset()  # ids of songs that stay in place when the playlist is regenerated
    notes: tuple[str, ...] = ()  # parts of the request that could not be fulfilled
    seed: int | None = None  # None if the playlist was opened, not generated
    request: PlaylistRequest | None = field(default=None, hash=False)
    dialect: str | None = None  # name of the walk that computes probabilities
    saved_id: int | None = None  # id of the saved playlist with the same songs
    absent: tuple[int, ...] = ()  # ids of songs that were skipped because they are missing or cannot be compared
    is_edited: bool = False  # True if a person made the list, or moved, added or removed songs in it

    @classmethod
    def from_drawn(cls, drawn: GeneratedPlaylist, request: PlaylistRequest, seed: int, kept: frozenset[int]) -> Self:
        """Return a draft of a generated playlist, in which some songs are kept."""
        ids = tuple(song.id for song in drawn.songs)
        return cls(ids, drawn.steps, kept & set(ids), drawn.notes, seed, request, request.dialect)

    @classmethod
    def from_saved(cls, playlist: SavedPlaylist, snapshot: Snapshot) -> "PlaylistDraft":
        """Return a draft of a saved playlist, with its saved :meth:`details`."""
        try:
            details = _Details.model_validate(playlist.details or {})
        except ValidationError:
            details = _Details()
        edges = {step[:2]: Edge(*step[2:]) for step in details.taken}
        draft = cls(
            playlist.song_ids, edges, frozenset(details.kept), details.notes, details.seed, dialect=details.dialect,
            saved_id=playlist.id, is_edited=not playlist.is_generated,
        )  # fmt: skip
        return draft.skip_absent(snapshot)

    def details(self) -> dict[str, Any]:
        """Return the JSON that is saved with the songs."""
        steps = [(pair, self.edges[pair]) for pair in pairwise(self.song_ids) if pair in self.edges]
        return _Details(
            taken=[(*pair, edge.reason, edge.probability, edge.label) for pair, edge in steps],
            seed=self.seed, dialect=self.dialect, notes=self.notes, kept=[i for i in self.song_ids if i in self.kept],
            edited=self.is_edited,
        ).model_dump(mode="json")  # fmt: skip

    def _replace_songs(self, ids: Sequence[int], **changes: Any) -> "PlaylistDraft":
        return replace(self, song_ids=tuple(ids), kept=self.kept & set(ids), saved_id=None, **changes)

    def redraw(self, drawn: GeneratedPlaylist, request: PlaylistRequest, seed: int) -> "PlaylistDraft":
        """Replace the songs with those of a partly regenerated playlist.

        Adjacent pairs keep their edges, except those that the request leaves out.
        """
        ids = [song.id for song in drawn.songs]
        kept = {pair: edge for pair, edge in self.edges.items() if edge.name not in request.not_because}
        return self._replace_songs(ids, edges=drawn.steps | kept, notes=drawn.notes, seed=seed, dialect=request.dialect)

    def move(self, index: int, to: int) -> "PlaylistDraft":
        """Move the song at `index` to position `to`."""
        ids = list(self.song_ids)
        ids.insert(to, ids.pop(index))
        return self._replace_songs(ids, is_edited=True)

    def insert(self, index: int, song_ids: Sequence[int]) -> "PlaylistDraft":
        """Insert songs before position `index`; songs already in the list move there."""
        new = list(dict.fromkeys(song_ids))
        before, after = ([i for i in part if i not in new] for part in (self.song_ids[:index], self.song_ids[index:]))
        return replace(self, song_ids=(*before, *new, *after), is_edited=True, saved_id=None)

    def drop_repeats(self, same: Sequence[int]) -> "PlaylistDraft":
        """Keep only the first song for each number in `same`, which contains one number per position."""
        first = {number: place for place, number in reversed(list(enumerate(same)))}
        return self._replace_songs([self.song_ids[place] for place in sorted(first.values())])

    def drop(self, index: int) -> "PlaylistDraft":
        """Remove the song at `index`."""
        return self._replace_songs([*self.song_ids[:index], *self.song_ids[index + 1 :]], is_edited=True)

    def toggle_kept(self, song_id: int) -> "PlaylistDraft":
        """Toggle whether a song is kept in place."""
        return replace(self, kept=self.kept ^ {song_id})

    def skip_absent(self, snapshot: Snapshot) -> "PlaylistDraft":
        """Skip songs that cannot be compared now, and replace duplicates with the song that represents them."""
        ids = snapshot.present_ids(self.song_ids)
        if ids == self.song_ids:
            return self
        rows = snapshot.rows_of(self.song_ids)
        absent = tuple(i for i, row in zip(self.song_ids, rows, strict=True) if row < 0)
        return replace(self, song_ids=ids, kept=self.kept & set(ids), absent=(*self.absent, *absent))


PLAYLIST: Key[PlaylistDraft | None] = Key("playlist", lambda: None, "current draft", per_library=True, is_kept=True)
NAME: Key[str] = Key("playlist_name", str, "name to save the playlist under")


_HISTORIES: Key[dict[str, tuple[tuple[PlaylistDraft, ...], int]]] = Key(
    "playlist_histories", dict, "drafts and index of the current one, keyed by library name", is_kept=True
)


def _history() -> tuple[tuple[PlaylistDraft, ...], int]:
    return _HISTORIES.get().get(LIBRARY.get(), ((), -1))


def _set_history(drafts: tuple[PlaylistDraft, ...], at: int) -> None:
    _HISTORIES.set(_HISTORIES.get() | {LIBRARY.get(): (drafts, at)})


def change(draft: PlaylistDraft) -> None:
    """Make a draft the current playlist; :func:`undo` returns to the previous one."""
    drafts, at = _history()
    drafts = (*drafts[: at + 1], draft)[-_MAX_DRAFTS:]
    _set_history(drafts, len(drafts) - 1)
    PLAYLIST.set(draft)


def amend(draft: PlaylistDraft) -> None:
    """Replace the current playlist with one that has the same songs, without adding an undo step."""
    drafts, at = _history()
    if drafts and PLAYLIST.get() is not None:
        _set_history((*drafts[:at], draft, *drafts[at + 1 :]), at)
    PLAYLIST.set(draft)


def can_undo() -> bool:
    """Return True if an earlier draft exists."""
    drafts, at = _history()
    return at > 0 or (PLAYLIST.get() is None and bool(drafts))


def can_redo() -> bool:
    """Return True if an undone change can be redone."""
    drafts, at = _history()
    return PLAYLIST.get() is not None and at < len(drafts) - 1


def undo() -> None:
    """Return to the previous draft, or reopen the playlist if another page has closed it."""
    if can_undo():
        _step(-1 if PLAYLIST.get() is not None else 0)


def redo() -> None:
    """Repeat the change that was undone."""
    if can_redo():
        _step(1)


def _step(n: int) -> None:
    drafts, at = _history()
    _set_history(drafts, at + n)
    PLAYLIST.set(drafts[at + n])
