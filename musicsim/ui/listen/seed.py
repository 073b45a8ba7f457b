"""The start of a queue: a song, sound from outside the library, several songs, or words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import MusicsimError
from musicsim.explorer.playlists.queue import MAX_EXAMPLES
from musicsim.explorer.search.matches import MatchKind, ids_of_match
from musicsim.explorer.search.query import Example, sample_evenly
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.ui.base.keys import CHOSEN, MARKED, Key
from musicsim.ui.base.uploads import EXAMPLE, Upload, example_of
from musicsim.ui.components.listening import play_songs
from musicsim.ui.listen.state import ListenState, begin, state_of

WORDS: Key[str] = Key("search_words", str, "words that songs must match", per_library=True, is_kept=True)
PLAY_AT: Key[int | None] = Key("listen_play_at", lambda: None, "position in the queue to play next; -1 for the seed")


@dataclass(frozen=True, slots=True)
class Seed:
    """The start of a queue; `example` is None for words alone."""

    name: str  # name under which its state and thumbs are stored
    example: int | Example | None = None  # a song's id, or sound from outside the library
    song: Song | None = None  # the example's song, if the library has it
    upload: Upload | None = None  # the upload, if the example is sound from outside the library

    @property
    def song_id(self) -> int | None:
        """Id of the song, or None."""
        return self.song.id if self.song is not None else None


def seed_of(snapshot: Snapshot) -> Seed | None:
    """Return the seed: the upload, the chosen song if it has a vector, or the words; otherwise, return None.

    Raises AudioError if the upload cannot be decoded.
    """
    upload, chosen = EXAMPLE.get(), CHOSEN.get()
    if upload is not None:
        example = example_of(snapshot, upload)
        songs = snapshot.songs_by_id([example.song_id]) if example.song_id else []
        return Seed(_name(snapshot, upload.digest), example, next(iter(songs), None), upload)
    if chosen is not None and snapshot.rows_of([chosen])[0] >= 0:
        for song in snapshot.songs_by_id([chosen]):
            return Seed(_name(snapshot, chosen), chosen, song)
    return Seed(_name(snapshot, f"words:{WORDS.get()}")) if WORDS.get() else None


def _name(snapshot: Snapshot, text: object) -> str:
    return f"{snapshot.library.name}:{text}"


def start_song(
    snapshot: Snapshot, song_id: int, *, others: Sequence[int] = (), marked: Int64Array | None = None
) -> None:
    """Play a song and start the queue from it.

    The `others` come next and are also examples; `marked` songs get rings on the map.
    """
    for song in snapshot.songs_by_id([song_id]):
        if CHOSEN.get() is None:
            WORDS.set("")  # until now, the words were the seed
        if others:
            begin_from(snapshot, song.id, opening=tuple(others), examples=dict.fromkeys(others, 1))
        else:
            begin_from(snapshot, song.id)
        if marked is not None:
            mark(marked)
        # playback starts before the queue is computed
        play_songs(snapshot.library, [song], queue=_name(snapshot, song.id))


def start_like(snapshot: Snapshot, ids: Sequence[int]) -> None:
    """Start the queue with songs like the given ones; if there are many, use an even sample of them."""
    first, *others = sample_evenly(np.asarray(ids), MAX_EXAMPLES).tolist()
    begin_from(snapshot, first, examples=dict.fromkeys(others, 1))


def pick_match(snapshot: Snapshot, kind: MatchKind, value: str) -> None:
    """Start the queue from a match of the search box: a song, all songs of an artist or an album, or words."""
    if kind == "words":
        WORDS.set(value)
        CHOSEN.set(None)
        EXAMPLE.set(None)
        PLAY_AT.set(0)
        try:
            mark(ids_of_match(snapshot, kind, value))
        except MusicsimError:  # the queue shows the error
            MARKED.set(MARKED.default())
        return
    ids = ids_of_match(snapshot, kind, value)
    ids = ids[snapshot.rows_of(ids) >= 0]
    if len(ids):
        first, *others = ids.tolist()[:MAX_EXAMPLES]
        start_song(snapshot, first, others=others, marked=ids)


def mark(ids: Int64Array) -> None:
    """Mark several songs on the map; do not mark a single song, which is the chosen one."""
    MARKED.set(ids if len(ids) > 1 else MARKED.default())


def begin_from(snapshot: Snapshot, song_id: int, **state: object) -> None:
    """Choose a song as the seed, with a new state."""
    CHOSEN.set(song_id)
    EXAMPLE.set(None)
    MARKED.set(MARKED.default())
    name = _name(snapshot, song_id)
    if state:
        begin(ListenState(name, **state))  # type: ignore[arg-type]
    else:
        state_of(name)
