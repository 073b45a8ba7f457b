"""Search a library for changed versions of its own songs."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from musicsim import evaluation
from musicsim.audio import Sound
from musicsim.errors import AudioError, ModelError
from musicsim.explorer import Rate, Snapshot, estimate_rate, find_similar, make_example, networks_in_use
from musicsim.extensions.robustness.changes import UNCHANGED, analyze_changes
from musicsim.library import Song, on_all_cores
from musicsim.progress import Progress, no_progress
from musicsim.wording import count

K = 10
N_SONGS = 30
"""Default number of songs."""
COLUMNS = ("Change", "Song is first", f"Kept of the {K} nearest")
_SEED = 0


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The results of one query: whether the song itself is first, and the ids of the nearest other songs."""

    is_first: bool
    nearest: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The results of one change, over all songs."""

    change: str
    found: Rate  # how often the song itself is the first result
    kept: float  # mean share of the nearest other songs that are also nearest without the change
    kept_low: float  # 95% interval over artists; equal to `kept` for a single artist
    kept_high: float

    @property
    def cells(self) -> tuple[str, str, str]:
        """The cells of a table with :data:`COLUMNS`."""
        found = f"{self.found.share:.0%} ({self.found.interval})"
        return self.change, found, f"{self.kept:.0%} ({self.kept_low:.0%} to {self.kept_high:.0%})"


@dataclass(frozen=True, slots=True)
class Robustness:
    """The results of all changes."""

    results: tuple[ChangeResult, ...]
    n_left_out: int  # number of songs whose files could not be analyzed

    def describe(self) -> str:
        """Describe the measurement in one or two sentences."""
        left_out = f" {count(self.n_left_out, 'song')} could not be read." if self.n_left_out else ""
        return f"{count(self.results[0].found.n, 'song')}, with 95% intervals.{left_out}"


def search_changed(snapshot: Snapshot, sound: Sound, song: Song) -> QueryResult:
    """Search for the changed sound of a song."""
    example = make_example(snapshot, sound, "", song.title)
    ids = [hit.song.id for hit in find_similar(snapshot, example, K + 1, max_per_artist=None)]
    # sound that equals that of the song is not searched for itself
    is_first = example.song_id == song.id or ids[0] == song.id
    return QueryResult(is_first, tuple(i for i in ids if i != song.id)[:K])


def measure_robustness(snapshot: Snapshot, n: int = N_SONGS, *, progress: Progress = no_progress) -> Robustness:
    """Change the middle minute of `n` random songs in every way, and search for each version.

    Each song is decoded and analyzed 13 times on all cores; about 4 MB per song are in memory. Raises ModelError if the
    library has fewer than two songs with readable files.
    """
    rows = np.random.default_rng(_SEED).permutation(snapshot.n_indexed)[:n]
    songs = snapshot.songs_by_id(snapshot.row_ids[np.sort(rows)])
    networks = networks_in_use(snapshot)

    def analyze(song: Song) -> dict[str, Sound] | None:
        try:
            return analyze_changes(song.path, networks)
        except (AudioError, OSError):
            return None

    found: list[dict[str, QueryResult]] = []
    artists: list[str] = []
    with closing(on_all_cores(analyze, songs)) as changed:
        for done, song in enumerate(songs):
            progress("changing songs", done, len(songs))
            sounds = next(changed)
            if sounds is not None:
                found.append({change: search_changed(snapshot, sound, song) for change, sound in sounds.items()})
                artists.append(song.artist or "")
    if len(found) < 2:
        raise ModelError("fewer than two songs can be read: check that the files are still in their folders.")
    results = (_summarize(change, found, artists) for change in found[0])
    return Robustness(tuple(results), len(songs) - len(found))


def _summarize(change: str, found: Sequence[dict[str, QueryResult]], artists: Sequence[str]) -> ChangeResult:
    rate = estimate_rate(float(np.mean([one[change].is_first for one in found])), len(found))
    kept = np.array([share_kept(one[change], one[UNCHANGED]) for one in found])
    if len(set(artists)) < 2 and artists[0]:
        return ChangeResult(change, rate, float(kept.mean()), float(kept.mean()), float(kept.mean()))
    return ChangeResult(
        change, rate, *evaluation.bootstrap_pairs(kept, np.zeros(len(kept)), artists, random_state=_SEED)
    )


def share_kept(changed: QueryResult, unchanged: QueryResult) -> float:
    """Return the share of the nearest songs of the unchanged query that are also nearest after the change."""
    return len(set(changed.nearest) & set(unchanged.nearest)) / max(1, len(unchanged.nearest))
