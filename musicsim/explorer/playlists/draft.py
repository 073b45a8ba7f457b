"""A playlist as an immutable draft, and drafts that are saved in a library."""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from musicsim.explorer.playlists.walk import Edge, GeneratedPlaylist
from musicsim.explorer.requests.options import list_changes, read_changes
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import OWN_PLAYLISTS, Library, SavedPlaylist
from musicsim.wording import add_number

MAX_NAME = 100
_ROOM_FOR_NUMBER = 4

_naming = threading.Lock()


class _Details(BaseModel):
    """The JSON that is saved with a playlist's songs."""

    # two song ids, reason, probability and label of each step; version 1.0.0 saved no labels
    taken: list[tuple[int, int, str, float, str] | tuple[int, int, str, float]] = []
    seed: int | None = None
    dialect: str | None = None
    notes: tuple[str, ...] = ()
    kept: list[int] = []
    edited: bool = False
    request: dict[str, Any] | None = None  # the options that differ from their defaults


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
            playlist.song_ids, edges, frozenset(details.kept), details.notes, details.seed,
            request=_read_request(details.request), dialect=details.dialect, saved_id=playlist.id,
            is_edited=not playlist.is_generated,
        )  # fmt: skip
        return draft.skip_absent(snapshot)

    def details(self) -> dict[str, Any]:
        """Return the JSON that is saved with the songs."""
        steps = [(pair, self.edges[pair]) for pair in pairwise(self.song_ids) if pair in self.edges]
        return _Details(
            taken=[(*pair, edge.reason, edge.probability, edge.label) for pair, edge in steps],
            seed=self.seed, dialect=self.dialect, notes=self.notes, kept=[i for i in self.song_ids if i in self.kept],
            edited=self.is_edited, request=list_changes(self.request) if self.request else None,
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


def _read_request(changes: Mapping[str, Any] | None) -> PlaylistRequest | None:
    """Return the request of a saved playlist; None if there is none, or if this version does not know an option."""
    try:
        return None if changes is None else read_changes(PlaylistRequest, changes)
    except ValueError:
        return None


def draft_queue(song_ids: Sequence[int], reasons: Sequence[str], pins: Collection[int]) -> PlaylistDraft:
    """Return a queue as a draft with the walk's reasons, one per song or "", in which pinned songs stay in place."""
    steps = zip(song_ids, song_ids[1:], reasons[1:], strict=False)
    edges = {(one, other): Edge(reason, 0.0) for one, other, reason in steps if reason}
    return PlaylistDraft(tuple(song_ids), edges, frozenset(pins) & set(song_ids))


def own_playlist(library: Library, name: str) -> SavedPlaylist | None:
    """Return the playlist with this name that was saved in musicsim."""
    lists = library.playlists(source=OWN_PLAYLISTS)
    return next((p for p in lists if p.category is None and p.name == name), None)


def save_draft(library: Library, draft: PlaylistDraft, name: str) -> PlaylistDraft:
    """Save a playlist in the library, replacing one with the same name; return it with its id."""
    library.add_playlists([(name, None, draft.song_ids, draft.details())], source=OWN_PLAYLISTS)
    saved = own_playlist(library, name)
    return replace(draft, saved_id=saved.id if saved else None)


def propose_free_name(library: Library, name: str) -> str:
    """Return a name that no playlist has, with a number if needed; a long name is cut off."""
    used = {playlist.name for playlist in library.playlists(source=OWN_PLAYLISTS)}
    return name if len(name) <= MAX_NAME and name not in used else add_number(name[: MAX_NAME - _ROOM_FOR_NUMBER], used)


def save_new_draft(library: Library, draft: PlaylistDraft, name: str) -> tuple[str, PlaylistDraft]:
    """Save a playlist under a free name, without replacing another; return the name, and the draft with its id."""
    with _naming:
        free = propose_free_name(library, name)
        return free, save_draft(library, draft, free)
