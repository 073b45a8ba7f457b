"""Reasons on trial: how often would the next song be a different one without the stated reason of a step?

A walk is fitted on the training lists of a collection and generates playlists. For each step from x to y, an edge is
removed, and the exact probability of y without it is computed. The step changes with probability
1 - min(1, P[y without the edge] / P[y]): no coupling of the two walks changes fewer steps. Three edges are removed:

- stated: the edge that the walk drew, which is the reason that the app shows
- of that size: another edge of x whose size is nearest to that of the stated edge; ties are broken at random
- shared: another edge that contains both songs, nearest in size to the stated edge, if there is one

"Ahead" pairs the stated edge with the others on the same steps, with the 95 % interval by resampling whole playlists.
*Share of P* is the mean of the share of P[y | x] that comes from the stated edge. *Alone* is the share of steps whose
songs share only the stated edge (next to the edge with all songs).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import NUMBER_3, Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Settings, format_lead, load_found, main
from experiments.support.cooccurrence import cooccurrence_clusters, cooccurrence_neighbors
from experiments.support.playlist_models import demo_graph
from experiments.support.playlists import LOADERS, Collection, demo_lists
from musicsim._arrays import Float64Array, IntpArray
from musicsim.evaluation import bootstrap_pairs
from musicsim.playlist import Hypergraph, PlaylistModel, build_edges

COLLECTIONS = ("yes_small", "yes_big", "aotm")
DEMO = "demo"
N_PLAYLISTS = {False: 200, True: 2000}
LENGTH = 12
N_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the number of its playlist, and probabilities of a change without each edge (nan if there is none)."""

    playlist: int
    stated: float
    of_size: float
    shared: float
    share: float
    n_shared: int


def p_changed(probability: float, without: Float64Array) -> Float64Array:
    """Return the probability that the next song changes without an edge, given its probabilities with and without it.

    This is the smallest value of all couplings of the two walks; `probability` must be positive.
    """
    return np.clip(1.0 - without / probability, 0.0, 1.0)


class Trials:
    """Probabilities of steps with and without an edge, from one song of a walk without restrictions."""

    def __init__(self, model: PlaylistModel, song: int) -> None:
        graph = model.hypergraph
        self.edges, self._p = model.edge_probabilities(song)
        self._share = self._p / (graph.mass[self.edges] - graph.song_weight[song])
        self._graph = graph

    def contains(self, song: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which of the edges contain a song."""
        return np.isin(self.edges, self._graph.edges_of(song))

    def probabilities(self, song: int) -> tuple[float, Float64Array]:
        """Return P[song], and its part that comes through each edge."""
        parts = np.where(self.contains(song), self._share, 0.0) * self._graph.song_weight[song]
        return float(parts.sum()), parts

    def p_changed(self, song: int) -> Float64Array:
        """Return the probability that the next song changes from `song` if an edge is removed, for each edge."""
        p, parts = self.probabilities(song)
        rest = 1.0 - self._p
        with np.errstate(divide="ignore", invalid="ignore"):
            without = np.where(rest > 0, (p - parts) / rest, 0.0)
        return p_changed(p, without)


def nearest_in_size(sizes: IntpArray, candidates: IntpArray, size: int, rng: np.random.Generator) -> int | None:
    """Return the candidate whose size is nearest by ratio; None without candidates."""
    if not len(candidates):
        return None
    gaps = np.abs(np.log(sizes[candidates] / size))
    return int(rng.choice(candidates[gaps <= gaps.min() + 1e-12]))


def try_steps(model: PlaylistModel, n_playlists: int, seed: int) -> Iterator[Step]:
    """Yield the steps of generated playlists, except those through the edge with all songs, which state no reason."""
    graph, rng = model.hypergraph, np.random.default_rng(seed)
    for number in range(n_playlists):
        walk = model.generate(LENGTH, random_state=rng, repeat=True)
        for previous, step in zip(walk.songs, walk.transitions, strict=False):
            if step.edge < 0 or step.edge == graph.uniform_edge:
                continue
            trials = Trials(model, previous)
            changed = trials.p_changed(step.song)
            p, parts = trials.probabilities(step.song)
            sizes = graph.sizes[trials.edges]
            stated = int(np.searchsorted(trials.edges, step.edge))
            others = np.flatnonzero((trials.edges != step.edge) & (trials.edges != graph.uniform_edge))
            shared = others[trials.contains(step.song)[others]]
            rivals = [nearest_in_size(sizes, some, int(sizes[stated]), rng) for some in (others, shared)]
            of_size, of_both = (np.nan if rival is None else float(changed[rival]) for rival in rivals)
            yield Step(number, float(changed[stated]), of_size, of_both, float(parts[stated] / p), len(shared))


def fit_walk(collection: Collection, seed: int, graph: Hypergraph | None = None) -> PlaylistModel:
    """Fit the walk on the training lists of the first split; by default, on attributes and co-occurrence."""
    lists, _ = collection.split(0, seed)
    if graph is None:
        graph = build_edges(
            collection.n_songs,
            **collection.known,
            cooccurrence_clusters=cooccurrence_clusters(lists, collection.n_songs, seed),
            cooccurrence_neighbors=cooccurrence_neighbors(lists, collection.n_songs, seed),
        )
    return PlaylistModel(graph).fit(lists)


def _ahead(steps: Sequence[Step], rival: str, seed: int) -> tuple[float, float, float] | None:
    """Return the lead of the stated edge over another on the steps that have both, with its interval."""
    both = [step for step in steps if not np.isnan(getattr(step, rival))]
    if len({step.playlist for step in both}) < 2:
        return None
    a, b = (np.array([getattr(step, name) for step in both]) for name in ("stated", rival))
    groups = np.array([step.playlist for step in both])
    return bootstrap_pairs(a, b, groups=groups, n=N_RESAMPLES, random_state=seed)


def summarize(name: str, model: PlaylistModel, steps: Sequence[Step], seed: int) -> dict[str, Any]:
    """Return the row of a collection."""
    row: dict[str, Any] = {"collection": name, "edges": model.hypergraph.n_edges, "steps": len(steps)}
    for words, field in (("stated", "stated"), ("of that size", "of_size"), ("shared", "shared")):
        values = np.array([getattr(step, field) for step in steps])
        row[f"changed, {words}"] = float(np.nanmean(values)) if not np.isnan(values).all() else None
    for words, field in (("of that size", "of_size"), ("shared", "shared")):
        lead = _ahead(steps, field, seed)
        row[f"ahead of one {words}"] = None if lead is None else format_lead(*lead)
    row["share of P"] = float(np.mean([step.share for step in steps]))
    row["alone"] = float(np.mean([step.n_shared == 0 for step in steps]))
    return row


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Put the reasons of generated playlists on trial."""
    seed, n = settings.seed, N_PLAYLISTS[settings.full]
    models: dict[str, PlaylistModel] = {}
    for name, published in load_found({name: LOADERS[name] for name in COLLECTIONS}, settings, progress).items():
        models[name] = fit_walk(published, seed)
        progress(f"{name} fitted")
    with demo_library(seed, progress) as library:
        lists = demo_lists(library)
        models[DEMO] = fit_walk(lists, seed, demo_graph(library.folder, lists.split(0, seed)[0]))
    rows, claims = [], []
    for name, model in models.items():
        steps = list(try_steps(model, n, seed))
        rows.append(summarize(name, model, steps, seed))
        lead = _ahead(steps, "of_size", seed)
        low = None if lead is None else lead[1]
        words = f"{name}: lower end of the lead of the stated edge over one of that size"
        claims.append(Claim(words, low, "above 0", low is not None and low > 0))
        progress(name)
    settings.facts["playlists"] = n
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "reasons": list_columns(
        Column("", "collection"),
        Column("steps", "steps", "{:,}"),
        Column("changed without the stated edge", "changed, stated", NUMBER_3),
        Column("without one of that size", "changed, of that size", NUMBER_3),
        Column("without one that both songs share", "changed, shared", NUMBER_3),
        Column("lead over one of that size (95%)", "ahead of one of that size"),
        Column("lead over a shared one (95%)", "ahead of one shared"),
    )
}


if __name__ == "__main__":
    main(
        "reasons", __doc__.splitlines()[0], run, data=("aotm", "yes"),
        short="200 of 2,000 playlists per collection. This is final, because every interval already excludes 0",
    )  # fmt: skip
