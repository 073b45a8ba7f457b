"""How well held-out lists of a library are continued, by its walk and by other ways.

A list of six songs or more is judged by its first half: the songs of the second that are not in the first are to be
found among 500 recommendations. Nothing is learned from judged lists but, by the ways that cannot do without, these
first halves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from musicsim import evaluation, playlist
from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.playlists.edges import build_hypergraph
from musicsim.explorer.playlists.fit import Lists as Listed
from musicsim.explorer.playlists.fit import fit_dialects, listed
from musicsim.explorer.playlists.song_labels import load_sources, with_company_of
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.continuation.continuing import WALK, Lists, Task, Ways, ways
from musicsim.library import Library
from musicsim.progress import Progress, no_progress, prefixed

LISTS = ("playlists", "sittings")
"""What people made or played together: playlists, but for those that were generated here, and sittings."""
MIN_SONGS = 6
"""Of a list that is judged."""
MIN_LISTS = 10
"""So long, below which nothing is judged: an interval over fewer says nothing."""
MEASURES = {"ndcg": "NDCG", "r_precision": "R-precision", "clicks": "Clicks", "hit@10": "Hit rate at 10"}
"""Each with its name; what the ways are ordered by comes first."""
MAX_JUDGED = 500  # lists of a part
_N_PARTS = 5
_ENOUGH = 200  # judged lists, after which no further part is
_N_RECOMMENDED = 500

Interval = tuple[float, float, float]
"""A mean over lists, and the ends of its 95 % interval."""


@dataclass(frozen=True, slots=True)
class Continued:
    """How well the lists of a library are continued: JSON values."""

    kind: str  # one of LISTS
    n_lists: int  # that are long enough to be judged
    n_judged: int
    n_parts: int  # of the lists, each judged by what the others teach
    n_songs: int  # that are recommended from
    scores: Mapping[str, Mapping[str, Interval]]  # by way and measure, the best NDCG first
    leads: Mapping[str, Interval]  # by other way: NDCG of the walk less its own

    @property
    def words(self) -> str:
        """Who is first, and by how much, in a sentence."""
        best = next(iter(self.scores))
        second = next(way for way in self.scores if way != WALK)
        mean, low, high = self.leads[second]
        if low <= 0 <= high:
            return f"By NDCG {WALK} and {second} are level ({mean:+.3f}, 95 % interval {low:+.3f} to {high:+.3f})."
        low, high = sorted((abs(low), abs(high)))
        ahead = f"by {abs(mean):.3f} (95 % interval {low:.3f} to {high:.3f})"
        return (
            f"By NDCG the walk is first, ahead of {second} {ahead}."
            if best == WALK
            else f"By NDCG {best} is first; the walk is behind {ahead}."
        )

    @property
    def method(self) -> str:
        """How it was measured, in a sentence."""
        parts = "one part" if self.n_parts == 1 else f"{self.n_parts} parts"
        return (
            f"{self.n_judged:,} of {self.n_lists:,} {self.kind} of {MIN_SONGS} songs or more, in {parts}: the second "
            f"half of each is sought among {self.n_songs:,} songs, by what all lists outside of the part teach."
        )

    def as_json(self) -> dict[str, Any]:
        """All of it, to be kept."""
        return asdict(self)


# --- lists and their parts -------------------------------------------------------------------------


def parts_of(lists: Lists, random_state: int) -> list[Int64Array]:
    """The numbers of the lists that are long enough, in five parts by chance."""
    long = np.array([at for at, songs in enumerate(lists) if len(set(songs)) >= MIN_SONGS], dtype=np.int64)
    return np.array_split(np.random.default_rng(random_state).permutation(long), _N_PARTS)


def split(lists: Lists, judged: Int64Array) -> tuple[Lists, Lists, Lists]:
    """Lists to learn from, first halves of judged ones, and the songs that are to be found."""
    held_out = set(judged.tolist())
    whole = [list(dict.fromkeys(lists[at])) for at in judged.tolist()]
    halves = [(len(songs) + 1) // 2 for songs in whole]
    return (
        [songs for at, songs in enumerate(lists) if at not in held_out],
        [songs[:half] for songs, half in zip(whole, halves, strict=True)],
        [songs[half:] for songs, half in zip(whole, halves, strict=True)],
    )


def lists_of(snapshot: Snapshot, kind: str) -> Lists:
    """The lists of a kind (:data:`LISTS`), in rows of songs.

    Raises ValueError if there is no such kind.
    """
    if kind not in LISTS:
        raise ValueError(f"kind={kind!r} should be one of {', '.join(LISTS)}.")
    if kind == "playlists":
        return listed(snapshot, generated=False).rows
    number, song_id = snapshot.library.listening.sittings().T
    rows = snapshot.rows_of(song_id)
    number, rows = number[rows >= 0], rows[rows >= 0]
    sittings = np.split(rows, np.flatnonzero(np.diff(number)) + 1)
    distinct = (list(dict.fromkeys(sitting.tolist())) for sitting in sittings)  # of copies of one sound, one
    return [songs for songs in distinct if len(songs) > 1]


def n_long_lists(snapshot: Snapshot) -> dict[str, int]:
    """How many lists of each kind could be judged."""
    return {kind: sum(map(len, parts_of(lists_of(snapshot, kind), 0))) for kind in LISTS}


# --- judging ----------------------------------------------------------------------------------------


def recommended(scores: Float64Array, begun: Sequence[int]) -> Int64Array:
    """The 500 songs with the best scores that are not in the list already; of equal ones the first by row."""
    kept = scores.copy()
    kept[list(begun)] = -np.inf
    n = min(_N_RECOMMENDED, len(kept) - len(begun))
    if not n:
        return np.empty(0, dtype=np.int64)
    able = np.flatnonzero(kept >= np.partition(kept, -n)[-n])
    return able[np.argsort(-kept[able], kind="stable")[:n]]


def measure(task: Task, taken: Lists, by: Ways, progress: Progress = no_progress) -> dict[str, dict[str, Float64Array]]:
    """Scores of every way, by measure, of each list (n_judged,)."""
    found = {}
    for number, (name, fit) in enumerate(by.items()):
        n_done, total = number * len(taken), len(by) * len(taken)
        progress(f"fitting: {name}", n_done, total)
        score, best = fit(), []
        for at, songs in enumerate(task.begun):
            progress(f"continuing lists: {name}", n_done + at, total)
            best.append(recommended(score(at, songs), songs))
        found[name] = evaluation.continuation_scores(best, taken, (10,))
    return found


def task_of(
    snapshot: Snapshot, kind: str, train: Lists, begun: Lists, progress: Progress = no_progress, random_state: int = 0
) -> Task:
    """To continue lists of a library, as its app does: edges by company know the lists to learn from alone."""
    sources = load_sources(snapshot)
    if kind == "sittings":
        sources = replace(sources, listeners={})  # those groups have heard of judged sittings

    def graph_of(made_of: Listed) -> playlist.Hypergraph:
        return build_hypergraph(snapshot, with_company_of(sources, made_of.rows, progress), own=False)

    def fit_walk(lists: Lists) -> playlist.PlaylistModel:
        rows = [list(songs) for songs in lists]
        return fit_dialects(Listed(rows, [None] * len(rows)), graph_of).model()

    artists = snapshot.columns.artist.codes
    return Task(snapshot.n_indexed, train, begun, fit_walk, artists, snapshot.X, random_state)


def continue_lists(
    library: Library, kind: str, progress: Progress = no_progress, *, random_state: int = 0
) -> Continued:
    """Judge every way on the lists of a library, by the built-in model of sound, which no list has taught.

    Parts of the lists are judged one after the other, each by what all other lists teach, until 200 lists are.

    Parameters
    ----------
    kind : one of :data:`LISTS`
    random_state : int
        Of the parts, the fits and the intervals.

    Raises
    ------
    ModelError
        If there are fewer than ten lists of six songs or more.
    """
    native = library.models.native()
    snapshot = take_snapshot(library, native.id if native else None)
    lists = lists_of(snapshot, kind)
    parts = parts_of(lists, random_state)
    n_long = sum(map(len, parts))
    if n_long < MIN_LISTS:
        raise ModelError(too_few(n_long, kind))
    found: list[dict[str, dict[str, Float64Array]]] = []
    n_judged = 0
    for number, part in enumerate(parts, start=1):
        part_progress = prefixed(progress, f"part {number}: ")
        judged = part[:MAX_JUDGED]
        train, begun, taken = split(lists, judged)
        task = task_of(snapshot, kind, train, begun, part_progress, random_state)
        found.append(measure(task, taken, ways(task), part_progress))
        n_judged += len(judged)
        if n_judged >= _ENOUGH:
            break
    return _summary(kind, n_long, n_judged, snapshot.n_indexed, found, random_state)


def too_few(n_long: int, kind: str) -> str:
    """That there is too little to judge by, and what to do."""
    return (
        f"{n_long:,} {kind} with {MIN_SONGS} songs or more, that people made, are too few to hold some out: "
        f"at least {MIN_LISTS} are needed. Import playlists or a listening history."
    )


def _summary(
    kind: str, n_long: int, n_judged: int, n_songs: int, found: list[dict[str, dict[str, Float64Array]]], seed: int
) -> Continued:
    whole = {way: {name: np.concatenate([part[way][name] for part in found]) for name in MEASURES} for way in found[0]}
    order = sorted(whole, key=lambda way: -whole[way]["ndcg"].mean())
    zeros = np.zeros(n_judged)
    return Continued(
        kind,
        n_long,
        n_judged,
        len(found),
        n_songs,
        {
            way: {name: evaluation.paired_bootstrap(whole[way][name], zeros, random_state=seed) for name in MEASURES}
            for way in order
        },
        {
            way: evaluation.paired_bootstrap(whole[WALK]["ndcg"], whole[way]["ndcg"], random_state=seed)
            for way in order
            if way != WALK
        },
    )
