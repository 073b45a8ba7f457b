"""A queue that never runs out: behind the last song in MPD's queue come the next songs of the walk."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import snapshot_under
from musicsim.extensions.mpd.client import Mpd, MpdAddress, MpdAwayError
from musicsim.library import Library, Song

_MAX_TRIES = 10  # draws, where MPD has none of the songs that were drawn
_LONGEST_WAIT_S = 30.0
_PAUSE_S = 0.5  # events often come in bursts; a peer that always reports one must not keep a core busy


@dataclass(frozen=True, slots=True)
class Appended:
    """What came into the queue, each song with the reason of its step, and which songs MPD does not have."""

    songs: tuple[tuple[Song, str], ...]
    unknown: tuple[Song, ...] = ()


class QueueFiller:
    """Appends the next songs of a walk to MPD's queue, as a request allows; how long the walk is does not count.

    Parameters
    ----------
    n_ahead : int
        Songs that are to come after the one that plays.
    n_apart : int
        A song comes again after so many others at the earliest; of a small library after half of its songs.
    """

    def __init__(
        self,
        library: Library,
        request: PlaylistRequest,
        *,
        model: str | None = None,
        n_ahead: int = 5,
        n_apart: int = 100,
    ) -> None:
        self._library, self._request, self._model = library, request, model
        self._n_ahead, self._n_apart = n_ahead, n_apart
        self._walk: Walk | None = None
        self._seeds = np.random.default_rng(request.seed)
        # ids of songs that were in the queue, the last one last: MPD may drop what has played
        self._lately: dict[int, None] = {}
        self._unknown: set[int] = set()

    def fill(self, mpd: Mpd) -> Appended:
        """Append as many songs as are missing; fewer where nothing else may come."""
        names, n_coming = mpd.queued()
        for song_id in mpd.song_ids(names):
            if song_id is not None:
                self._note(song_id)
        appended: list[tuple[Song, str]] = []
        unknown: list[Song] = []
        for _ in range(_MAX_TRIES):
            n_missing = self._n_ahead - n_coming - len(appended)
            drawn = self._draw(n_missing) if n_missing > 0 else []
            if not drawn:
                break
            known = {song.id for song, _ in mpd.known([song for song, _ in drawn])}
            unknown += [song for song, _ in drawn if song.id not in known]
            self._unknown.update(song.id for song in unknown)
            steps = [(song, reason) for song, reason in drawn if song.id in known]
            if steps:
                mpd.queue([song for song, _ in steps])
            for song, _ in steps:
                self._note(song.id)
            appended += steps
        return Appended(tuple(appended), tuple(unknown))

    def _note(self, song_id: int) -> None:
        self._lately.pop(song_id, None)
        self._lately[song_id] = None

    def _draw(self, n_songs: int) -> list[tuple[Song, str]]:
        """The walk's next songs with their reasons: it goes on from the last songs as a playlist does."""
        walk = self._current_walk()
        now = walk.snapshot
        here = [i for i, row in zip(self._lately, now.rows_of(list(self._lately)), strict=True) if row >= 0]
        before = here[-self._request.spacing - 1 :]
        n_apart = min(self._n_apart, now.n_indexed // 2)
        request = replace(
            self._request, length=len(before) + n_songs, minutes=None, keep=dict(enumerate(before)), through=(),
            first=None if before else self._request.first,
            exclude=self._request.exclude | self._unknown | set(here[max(0, len(here) - n_apart):]),
        )  # fmt: skip
        drawn = walk.draw(request, int(self._seeds.integers(2**31)))
        steps = zip(drawn.songs, drawn.edges, strict=True)
        return [(song, edge.reason if edge else "") for song, edge in steps][len(before) :]

    def _current_walk(self) -> Walk:
        if self._walk is None or self._walk.snapshot.revision != self._library.revision:
            self._walk = Walk(snapshot_under(self._library, self._model))
        return self._walk


def keep_filled(
    filler: QueueFiller, library: Library, address: MpdAddress, tell: Callable[[str], None]
) -> Iterator[Appended]:
    """Follow MPD for as long as it is asked to, and across its restarts; gives what was appended, each time.

    `tell` takes a sentence when MPD has gone and when it is back.

    Raises ServerError if MPD does not answer at the beginning, or refuses.
    """
    n_tries, was_there = 0, False
    while True:
        try:
            with Mpd(library, address) as mpd:
                if n_tries:
                    tell(f"MPD at {address} is back.")
                n_tries, was_there = 0, True
                while True:
                    appended = filler.fill(mpd)
                    if appended.songs or appended.unknown:
                        yield appended
                    mpd.wait()
                    time.sleep(_PAUSE_S)
        except MpdAwayError as error:
            if not was_there:
                raise
            if not n_tries:
                tell(f"{error} Trying again until it does.")
            time.sleep(min(2.0**n_tries / 2, _LONGEST_WAIT_S))
            n_tries = min(n_tries + 1, 10)
