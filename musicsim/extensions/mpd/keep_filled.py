"""A queue that never runs out: the walk's next songs are appended to MPD's queue."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from musicsim.explorer import PlaylistRequest, Walk, snapshot_under
from musicsim.extensions.mpd.client import Mpd, MpdAddress, MpdAwayError
from musicsim.library import Library, Song

_MAX_TRIES = 10  # maximum number of attempts to generate songs that MPD has
_MAX_WAIT_S = 30.0
_PAUSE_S = 0.5  # seconds to pause after an event, because events come in bursts, and from some servers constantly


@dataclass(frozen=True, slots=True)
class Appended:
    """Songs that were added to the queue, each with a reason, and songs that MPD does not have."""

    songs: tuple[tuple[Song, str], ...]
    unknown: tuple[Song, ...] = ()


class QueueFiller:
    """Appends the walk's next songs to MPD's queue, up to `n_ahead` songs after the current song.

    A song repeats only after `n_apart` other songs, or after half of the library if that is less.
    """

    def __init__(
        self, library: Library, request: PlaylistRequest, *, model: str | None = None, n_ahead: int = 5,
        n_apart: int = 100,
    ) -> None:  # fmt: skip
        self._library, self._request, self._model = library, request, model
        self._n_ahead, self._n_apart = n_ahead, n_apart
        self._walk: Walk | None = None
        self._seeds = np.random.default_rng(request.seed)
        # ids of songs that are or were in the queue, most recent last; MPD may remove songs after playing them
        self._recent: dict[int, None] = {}
        self._unknown: set[int] = set()

    def fill(self, mpd: Mpd) -> Appended:
        """Append the missing songs, or fewer if the request does not allow enough songs."""
        names, n_coming = mpd.read_queue()
        for song_id in mpd.song_ids(names):
            if song_id is not None:
                self._note(song_id)
        appended: list[tuple[Song, str]] = []
        unknown: list[Song] = []
        for _ in range(_MAX_TRIES):
            n_missing = self._n_ahead - n_coming - len(appended)
            steps = self._draw(n_missing) if n_missing > 0 else []
            if not steps:
                break
            known = {song.id for song, _ in mpd.find_known([song for song, _ in steps])}
            unknown += [song for song, _ in steps if song.id not in known]
            self._unknown.update(song.id for song in unknown)
            steps = [(song, reason) for song, reason in steps if song.id in known]
            if steps:
                mpd.queue([song for song, _ in steps])
            for song, _ in steps:
                self._note(song.id)
            appended += steps
        return Appended(tuple(appended), tuple(unknown))

    def _note(self, song_id: int) -> None:
        self._recent.pop(song_id, None)
        self._recent[song_id] = None

    def _draw(self, n_songs: int) -> list[tuple[Song, str]]:
        """Return the walk's next songs with their reasons, as in a playlist that begins with the most recent songs."""
        if self._walk is None or self._walk.snapshot.revision != self._library.revision:
            self._walk = Walk(snapshot_under(self._library, self._model))
        snapshot = self._walk.snapshot
        here = [i for i, row in zip(self._recent, snapshot.rows_of(list(self._recent)), strict=True) if row >= 0]
        before = here[-self._request.spacing - 1 :]
        n_apart = min(self._n_apart, snapshot.n_indexed // 2)
        request = replace(
            self._request, length=len(before) + n_songs, minutes=None, keep=dict(enumerate(before)), through=(),
            first=None if before else self._request.first,
            exclude=self._request.exclude | self._unknown | set(here[max(0, len(here) - n_apart):]),
        )  # fmt: skip
        drawn = self._walk.generate(request, int(self._seeds.integers(2**31)))
        steps = zip(drawn.songs, drawn.edges, strict=True)
        return [(song, edge.reason if edge else "") for song, edge in steps][len(before) :]


def keep_filled(
    filler: QueueFiller, library: Library, address: MpdAddress, report: Callable[[str], None]
) -> Iterator[Appended]:
    """Yield the appended songs after each change; `report` gets a sentence when MPD stops or resumes responding."""
    n_tries, was_there = 0, False
    while True:
        try:
            with Mpd(library, address) as mpd:
                if n_tries:
                    report(f"MPD at {address} is back.")
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
                report(f"{error} Trying again.")
            time.sleep(min(2.0**n_tries / 2, _MAX_WAIT_S))
            n_tries = min(n_tries + 1, 10)
