"""Evaluate every playlist model on one split of a collection: for experiments.playlists."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from experiments.support.cooccurrence import cooccurrence_clusters, cooccurrence_neighbors
from experiments.support.playlist_rivals import (
    BigramModel,
    LatentMarkovEmbedding,
    Popularity,
    StationaryModel,
    UniformShuffle,
)
from experiments.support.playlists import Collection, Lists, song_weights, split_lists
from musicsim._arrays import Float64Array, Int64Array
from musicsim.explorer.playlists.edges import build_hypergraph, default_weights
from musicsim.explorer.playlists.fit import LEANING, STRENGTH, TrainingPlaylists, fit_dialects
from musicsim.explorer.playlists.song_labels import load_sources, replace_company
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.playlist import Dialects, Hypergraph, PlaylistModel, build_edges, edge_families, kind_factors, reweight
from musicsim.playlist.hypergraph import name_parts

Made = TypeVar("Made")

OF_THESIS = {"audio", "listeners", "era", "familiarity", "lyrics", "tag", "uniform"}
"""Kinds of knowledge in the thesis's hypergraph."""

UNIFORM, POPULARITY, BIGRAM, LME = "uniform shuffle", "popularity", "bigram", "LME"
STATIONARY = "stationary"
KNOWN, JOINED = "known", "known, joined"
COMPANY, BAYES, NEIGHBORS, BOTH = "company", "bayes", "neighbors", "both"
WEIGHTED, HELD_OUT = "weighted", "held out"
TAGS, TAGS_JOINED, THESIS, THESIS_JOINED = (
    "tags", "tags, conjunctions", "all of the thesis", "all of the thesis, conjunctions",
)  # fmt: skip
APP = "all of the app, conjunctions"


@dataclass(frozen=True, slots=True)
class Result:
    """A model on the test lists of one split.

    Attributes
    ----------
    role : str
        Step of the ladder, equal in every collection; `model` is its text.
    rows : (n_test,), the test lists
    n_transitions, log_p : (n_test,), of each test list; log P excludes the first song
    gain : float, G of thesis 7.7
    seconds : float, CPU seconds of computing co-occurrence, building edges and fitting
    """

    collection: str
    role: str
    model: str
    split: int
    rows: Int64Array
    n_transitions: Int64Array
    log_p: Float64Array
    gain: float
    seconds: float
    n_edges: int | None


@dataclass(frozen=True, slots=True)
class Dialect:
    """A category on one split: gains G on its test lists by its own walk, by that of all lists, and without order."""

    edges: str
    split: int
    category: str
    n_judged: int
    of_dialect: float
    of_global: float
    leaning: float | None = None
    stationary: float | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """Weight of each family of edges in a walk: of all lists (category None) or of a category."""

    edges: str
    split: int
    category: str | None
    shares: dict[str, float]


Measured = tuple[list[Result], list[Dialect], list[Shares]]


@dataclass(frozen=True, slots=True)
class Judge:
    """Fit models on the training lists of one split and evaluate them on its test lists."""

    collection: Collection
    split: int
    train: Int64Array
    test: Int64Array

    def lists(self, rows: Int64Array) -> Lists:
        return [self.collection.playlists[row] for row in rows]

    def categories(self, rows: Int64Array) -> list[str | None]:
        return [self.collection.categories[row] for row in rows]

    def result(self, role: str, words: str, make: Callable[[], Any], before_s: float = 0.0) -> Result:
        training = self.lists(self.train)
        model, seconds = _timed(lambda: make().fit(training))
        return self.judged(role, words, model, before_s + seconds)

    def judged(self, role: str, words: str, model: Any, seconds: float) -> Result:
        """Evaluate a fitted model."""
        lists = self.lists(self.test)
        return Result(
            self.collection.name,
            role,
            words,
            self.split,
            self.test,
            np.array([len(playlist) - 1 for playlist in lists]),
            model.transition_log_probability(lists),
            model.relative_gain(lists),
            seconds,
            model.hypergraph.n_edges if hasattr(model, "hypergraph") else None,
        )


def measure_rivals(judge: Judge, seed: int) -> Iterator[Result]:
    """Evaluate models without edges."""
    n = judge.collection.n_songs
    yield judge.result(UNIFORM, UNIFORM, lambda: UniformShuffle(n))
    yield judge.result(POPULARITY, POPULARITY, lambda: Popularity(n))
    yield judge.result(BIGRAM, BIGRAM, lambda: BigramModel(n))
    yield judge.result(LME, LME, lambda: LatentMarkovEmbedding(n, random_state=seed))


def measure_walks(judge: Judge, seed: int) -> Iterator[Result]:
    """Evaluate walks on a collection of lists and labels; each step adds edges."""
    if judge.collection.known:
        yield from _described_walks(judge)
    yield from _cooccurrence_walks(judge, seed)


def _described_walks(judge: Judge) -> Iterator[Result]:
    """Evaluate walks on attributes of the songs and on all their pairs.

    Pairs with fewer songs than in the thesis are dropped.
    """
    n, known = judge.collection.n_songs, judge.collection.known
    words = f"walk: {', '.join(known)}"
    yield judge.result(KNOWN, words, lambda: PlaylistModel(build_edges(n, **known)))
    fewest = max(2, n // 256)
    yield judge.result(
        JOINED,
        f"{words}, conjunctions",
        lambda: PlaylistModel(build_edges(n, **known, conjunctions=True, min_joint_size=fewest)),
    )


def _cooccurrence_walks(judge: Judge, seed: int) -> Iterator[Result]:
    """Evaluate walks that also use the co-occurrence of songs in the training lists."""
    about, train = judge.collection, judge.lists(judge.train)
    n = about.n_songs
    groups, groups_s = _timed(lambda: cooccurrence_clusters(train, n, seed))
    near, near_s = _timed(lambda: cooccurrence_neighbors(train, n, seed))
    graph, graph_s = _timed(lambda: build_edges(n, **about.known, cooccurrence_clusters=groups))
    words = ", ".join([*about.known, "company"])
    yield judge.result(COMPANY, f"walk: {words}", partial(PlaylistModel, graph), groups_s + graph_s)
    bayes = partial(PlaylistModel, graph, edge_probability="bayes")
    yield judge.result(BAYES, f"walk: {words}; bayes", bayes, groups_s + graph_s)
    graph, graph_s = _timed(lambda: build_edges(n, **about.known, cooccurrence_neighbors=near))
    words = ", ".join([*about.known, "neighbors"])
    yield judge.result(NEIGHBORS, f"walk: {words}", partial(PlaylistModel, graph), near_s + graph_s)
    graph, graph_s = _timed(
        lambda: build_edges(n, **about.known, cooccurrence_clusters=groups, cooccurrence_neighbors=near)
    )
    before_s = groups_s + near_s + graph_s
    words = ", ".join([*about.known, "company", "neighbors"])
    yield judge.result(BOTH, f"walk: {words}", partial(PlaylistModel, graph), before_s)
    by_plays = Hypergraph(graph.incidence, graph.names, song_weights(train, n))
    walk, walk_s = _timed(lambda: PlaylistModel(by_plays).fit(train))
    before_s += walk_s
    yield judge.judged(WEIGHTED, f"walk: {words}; songs by plays", walk, before_s)
    held, held_s = _timed(lambda: _with_held_out_shares(walk, about, train, seed))
    yield judge.judged(HELD_OUT, f"walk: {words}; songs by plays, held-out shares", held, before_s + held_s)
    yield judge.result(STATIONARY, f"stationary: {words}", partial(StationaryModel, graph), groups_s + graph_s)


def _with_held_out_shares(walk: PlaylistModel, about: Collection, train: Lists, seed: int) -> PlaylistModel:
    """Return the walk with weights per family that were fitted on held-out lists.

    Co-occurrence is computed from three quarters of the lists, and weights are fitted on the rest.
    """
    order = np.random.default_rng([seed, 1]).permutation(len(train))
    n_others = len(train) // 4
    heard, others = ([train[i] for i in part] for part in (order[n_others:], order[:n_others]))
    graph = build_edges(
        about.n_songs,
        **about.known,
        cooccurrence_clusters=cooccurrence_clusters(heard, about.n_songs, seed),
        cooccurrence_neighbors=cooccurrence_neighbors(heard, about.n_songs, seed),
        song_weight=walk.hypergraph.song_weight,
    )
    return reweight(walk, kind_factors(walk, PlaylistModel(graph).fit(others)))


def _timed(make: Callable[[], Made]) -> tuple[Made, float]:
    started = time.process_time()
    made = make()
    return made, time.process_time() - started


def measure_collection(collection: Collection, number: int, seed: int) -> Measured:
    """Evaluate all models on one split of a collection of lists and labels, which does not have dialects."""
    judge = Judge(collection, number, *split_lists(collection.categories, number, seed))
    return [*measure_rivals(judge, seed), *measure_walks(judge, seed)], [], []


# --- the demo library ---------------------------------------------------------------------------------------------


def demo_graph(folder: Path, train: Lists) -> Hypergraph:
    """Return the app's hypergraph, with co-occurrence from the training lists only."""
    with Library.open(folder) as library:
        snapshot = take_snapshot(library)
        sources = replace_company(load_sources(snapshot), train, lambda *_, **__: None)
        return build_hypergraph(snapshot, sources, own=False)


def edge_sets(graph: Hypergraph) -> dict[str, Hypergraph]:
    """Return the feature sets that the thesis compares (figures 7.2 and 7.3), and the app's."""
    kinds = edge_families(graph.names)
    single = np.array([len(name_parts(name)) == 1 for name in graph.names])
    of_tags = np.array([set(kind) <= {"tag", "uniform"} for kind in kinds])
    of_thesis = np.array([set(kind) <= OF_THESIS for kind in kinds])
    kept = {TAGS: of_tags & single, TAGS_JOINED: of_tags, THESIS: of_thesis & single, THESIS_JOINED: of_thesis}
    parts = {
        name: Hypergraph(graph.incidence[:, rows], [graph.names[e] for e in np.flatnonzero(rows)])
        for name, rows in kept.items()
    }
    return parts | {APP: graph}


def measure_demo(folder: Path, collection: Collection, number: int, seed: int) -> Measured:
    """Evaluate all models on one split of the demo library, and one walk per category next to that of all lists."""
    judge = Judge(collection, number, *split_lists(collection.categories, number, seed))
    graph, graph_s = _timed(lambda: demo_graph(folder, judge.lists(judge.train)))
    sets = edge_sets(graph)
    results = [*measure_rivals(judge, seed), *_demo_walks(judge, sets, graph_s)]
    dialects: list[Dialect] = []
    shares: list[Shares] = []
    for name, edges in sets.items():
        found, weights = measure_dialects(judge, name, edges, partial(demo_graph, folder) if name == APP else None)
        dialects += found
        shares += weights
    return results, dialects, shares


def _demo_walks(judge: Judge, sets: Mapping[str, Hypergraph], graph_s: float) -> Iterator[Result]:
    whole, app = sets[THESIS_JOINED], sets[APP]
    yield judge.result(STATIONARY, f"stationary: {THESIS_JOINED}", lambda: StationaryModel(whole), graph_s)
    for name in (TAGS, TAGS_JOINED, THESIS, THESIS_JOINED):
        yield judge.result(name, f"walk: {name}", partial(PlaylistModel, sets[name]), graph_s)
    yield judge.result(
        BAYES, f"walk: {THESIS_JOINED}; bayes", lambda: PlaylistModel(whole, edge_probability="bayes"), graph_s
    )
    prior = 1.0 + STRENGTH * default_weights(app.names)
    yield judge.result(APP, f"walk: {APP}", lambda: PlaylistModel(app, prior=prior), graph_s)
    weighted = Hypergraph(app.incidence, app.names, song_weights(judge.lists(judge.train), judge.collection.n_songs))
    yield judge.result(WEIGHTED, f"walk: {APP}; songs by plays", lambda: PlaylistModel(weighted, prior=prior), graph_s)


def measure_dialects(
    judge: Judge, name: str, graph: Hypergraph, graph_of: Callable[[Lists], Hypergraph] | None = None
) -> tuple[list[Dialect], list[Shares]]:
    """Evaluate walks of all lists and of each category, as in the thesis or, if `graph_of` builds edges, as in the app.

    On all edges of the thesis, also evaluate walks without memory, and dialects regularized toward the walk of all
    lists, as in the app.
    """
    lists = TrainingPlaylists(judge.lists(judge.train), judge.categories(judge.train))
    test, categories = judge.lists(judge.test), judge.categories(judge.test)
    if graph_of is not None:
        fitted = fit_dialects(lists, lambda made_of: graph if made_of is lists else graph_of(made_of.rows))
    else:
        fitted = Dialects(graph).fit(lists.rows, lists.categories)
    leaning, alone = {}, {}
    if name == THESIS_JOINED:
        lean = Dialects(graph, strength=LEANING).fit(lists.rows, lists.categories)
        leaning = {c: gain.of_dialect for c, gain in lean.gains(test, categories).items()}
        alone = _stationary_gains(judge, graph)
    dialects = [
        Dialect(name, judge.split, c, gain.n_playlists, gain.of_dialect, gain.of_global, leaning.get(c), alone.get(c))
        for c, gain in fitted.gains(test, categories).items()
    ]
    shares = [Shares(name, judge.split, None, fitted.global_.family_shares())]
    shares += [Shares(name, judge.split, c, walk.family_shares()) for c, walk in fitted.models_.items()]
    return dialects, shares


def _stationary_gains(judge: Judge, graph: Hypergraph) -> dict[str, float]:
    """Return the gain of a walk without memory for each category, fitted and evaluated on its lists only."""
    gains = {}
    for category in sorted({c for c in judge.categories(judge.train) if c}):
        train, test = (
            [p for p, c in zip(judge.lists(rows), judge.categories(rows), strict=True) if c == category]
            for rows in (judge.train, judge.test)
        )
        if test:
            gains[category] = StationaryModel(graph).fit(train).relative_gain(test)
    return gains
