"""Evaluation of playlists: the walk and other methods continue held-out lists of a library.

A list of six songs or more is split in halves. The new songs of its second half must be found among 500
recommendations. Methods do not learn from judged lists, except that BPR and ALS need the first halves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from musicsim import evaluation, playlist
from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_choice
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
"""Kinds of lists: playlists, except those generated here, and sittings (songs played in a row)."""
MIN_SONGS = 6  # minimum number of songs of a judged list
MIN_LISTS = 10  # minimum number of such lists for a useful interval
MEASURES = {"ndcg": "NDCG", "r_precision": "R-precision", "clicks": "Clicks", "hit@10": "Hit rate at 10"}
"""Measures with their names; methods are sorted by the first."""
MAX_JUDGED = 500  # lists of a part
_N_PARTS = 5
_ENOUGH = 200  # judged lists, after which no further part is judged
_N_RECOMMENDED = 500

Interval = tuple[float, float, float]  # a mean over lists, and the ends of its 95% interval


@dataclass(frozen=True, slots=True)
class Continued:
    """Scores of methods that continue the lists of a library, as JSON values."""

    kind: str  # one of LISTS
    n_lists: int  # that are long enough
    n_judged: int
    n_parts: int
    n_songs: int  # that can be recommended
    scores: Mapping[str, Mapping[str, Interval]]  # by method and measure, best NDCG first
    leads: Mapping[str, Interval]  # by other method: NDCG of the walk minus its own

    @property
    def summary(self) -> str:
        """The best method and its lead, in one sentence."""
        best = next(iter(self.scores))
        second = next(way for way in self.scores if way != WALK)
        mean, low, high = self.leads[second]
        if low <= 0 <= high:
            return f"By NDCG, {WALK} and {second} are level ({mean:+.3f}, 95% interval {low:+.3f} to {high:+.3f})."
        low, high = sorted((abs(low), abs(high)))
        lead = f"by {abs(mean):.3f} (95% interval {low:.3f} to {high:.3f})"
        if best == WALK:
            return f"By NDCG, the walk is first, ahead of {second} {lead}."
        return f"By NDCG, {best} is first; the walk is behind {lead}."

    @property
    def method(self) -> str:
        parts = "one part" if self.n_parts == 1 else f"{self.n_parts} parts"
        return (
            f"{self.n_judged:,} of {self.n_lists:,} {self.kind} of {MIN_SONGS} songs or more, in {parts}. The second "
            f"half of each is searched among {self.n_songs:,} songs; methods learn from all lists outside the part."
        )


def parts_of(lists: Lists, random_state: int) -> list[Int64Array]:
    """Split the numbers of the lists that are long enough into five random parts."""
    long = np.array([at for at, songs in enumerate(lists) if len(set(songs)) >= MIN_SONGS], dtype=np.int64)
    return np.array_split(np.random.default_rng(random_state).permutation(long), _N_PARTS)


def split(lists: Lists, judged: Int64Array) -> tuple[Lists, Lists, Lists]:
    """Return the training lists, and the first and second halves of the judged lists, without repeats."""
    held_out = set(judged.tolist())
    whole = [list(dict.fromkeys(lists[at])) for at in judged.tolist()]
    return (
        [songs for at, songs in enumerate(lists) if at not in held_out],
        [songs[: (len(songs) + 1) // 2] for songs in whole],
        [songs[(len(songs) + 1) // 2 :] for songs in whole],
    )


def lists_of(snapshot: Snapshot, kind: str) -> Lists:
    """Return the lists of a kind (:data:`LISTS`) as rows of songs."""
    check_choice("kind", kind, LISTS)
    if kind == "playlists":
        return listed(snapshot, generated=False).rows
    number, song_id = snapshot.library.listening.sittings().T
    rows = snapshot.rows_of(song_id)
    number, rows = number[rows >= 0], rows[rows >= 0]
    sittings = np.split(rows, np.flatnonzero(np.diff(number)) + 1)
    distinct = (list(dict.fromkeys(sitting.tolist())) for sitting in sittings)  # duplicates share a row
    return [songs for songs in distinct if len(songs) > 1]


def n_long_lists(snapshot: Snapshot) -> dict[str, int]:
    return {kind: sum(map(len, parts_of(lists_of(snapshot, kind), 0))) for kind in LISTS}


def recommend(scores: Float64Array, begun: Sequence[int]) -> Int64Array:
    """Return the 500 songs with the best scores that are not in the list; ties are in row order."""
    new_scores = scores.copy()
    new_scores[list(begun)] = -np.inf
    n = min(_N_RECOMMENDED, len(scores) - len(begun))
    if not n:
        return np.empty(0, dtype=np.int64)
    best = np.flatnonzero(new_scores >= np.partition(new_scores, -n)[-n])
    return best[np.argsort(-new_scores[best], kind="stable")[:n]]


def measure(task: Task, rest: Lists, by: Ways, progress: Progress = no_progress) -> dict[str, dict[str, Float64Array]]:
    """Return the scores of the methods `by`, by measure, for each list, (n_judged,); `rest` are the second halves."""
    scores = {}
    for number, (name, fit) in enumerate(by.items()):
        n_done, total = number * len(rest), len(by) * len(rest)
        progress(f"fitting: {name}", n_done, total)
        score, best = fit(), []
        for at, songs in enumerate(task.begun):
            progress(f"continuing lists: {name}", n_done + at, total)
            best.append(recommend(score(at, songs), songs))
        scores[name] = evaluation.continuation_scores(best, rest, (10,))
    return scores


def task_of(
    snapshot: Snapshot, kind: str, train: Lists, begun: Lists, progress: Progress = no_progress, random_state: int = 0
) -> Task:
    """Return the task to continue lists as the app does; co-occurrence edges use only the training lists."""
    sources = load_sources(snapshot)
    if kind == "sittings":
        sources = replace(sources, listeners={})  # these groups contain the judged sittings

    def graph_of(lists: Listed) -> playlist.Hypergraph:
        return build_hypergraph(snapshot, with_company_of(sources, lists.rows, progress), own=False)

    def fit_walk(lists: Lists) -> playlist.PlaylistModel:
        rows = [list(songs) for songs in lists]
        return fit_dialects(Listed(rows, [None] * len(rows)), graph_of).model()

    artists = snapshot.columns.artist.codes
    return Task(snapshot.n_indexed, train, begun, fit_walk, artists, snapshot.X, random_state)


def continue_lists(
    library: Library, kind: str, progress: Progress = no_progress, *, random_state: int = 0
) -> Continued:
    """Judge every method on the lists of a library, with the built-in Sound model, which does not learn from lists.

    The parts are judged in turn, each after learning from all other lists, until 200 lists are judged. Raises
    ModelError if there are fewer than ten lists of six songs or more.
    """
    native = library.models.native()
    snapshot = take_snapshot(library, native.id if native else None)
    lists = lists_of(snapshot, kind)
    parts = parts_of(lists, random_state)
    n_long = sum(map(len, parts))
    if n_long < MIN_LISTS:
        raise ModelError(too_few(n_long, kind))
    scores: list[dict[str, dict[str, Float64Array]]] = []
    n_judged = 0
    for number, part in enumerate(parts, start=1):
        part_progress = prefixed(progress, f"part {number}: ")
        judged = part[:MAX_JUDGED]
        train, begun, rest = split(lists, judged)
        task = task_of(snapshot, kind, train, begun, part_progress, random_state)
        scores.append(measure(task, rest, ways(task), part_progress))
        n_judged += len(judged)
        if n_judged >= _ENOUGH:
            break
    by_way = {
        way: {name: np.concatenate([part[way][name] for part in scores]) for name in MEASURES} for way in scores[0]
    }
    order = sorted(by_way, key=lambda way: -by_way[way]["ndcg"].mean())

    def compare(way: str, name: str, minus: Float64Array) -> Interval:
        return evaluation.paired_bootstrap(by_way[way][name], minus, random_state=random_state)

    means = {way: {name: compare(way, name, np.zeros(n_judged)) for name in MEASURES} for way in order}
    leads = {way: compare(WALK, "ndcg", by_way[way]["ndcg"]) for way in order if way != WALK}
    return Continued(kind, n_long, n_judged, len(scores), snapshot.n_indexed, means, leads)


def run_job(library: Library, *, lists: str, progress: Any) -> bool:
    """Evaluate `lists`, one of LISTS, as a background job; its trace is the result."""
    result = continue_lists(library, lists, progress)
    progress.trace(asdict(result))
    progress.outcome = result.summary
    return True


def too_few(n_long: int, kind: str) -> str:
    return (
        f"This library has {n_long:,} {kind} with {MIN_SONGS} songs or more; at least {MIN_LISTS} are "
        "needed to hold some out. Import playlists or a listening history."
    )
