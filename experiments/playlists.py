"""Playlist models: the likelihood of real, held-out playlists under the walk and other models (thesis, section 7.7).

A quarter of the lists of each category is for testing, the others for training; all numbers are means over splits. A
list has two or more songs, like a segment of the thesis, and immediate repeats are removed. Log P is the mean over all
transitions of the test lists, in nats; G is the thesis's gain over uniform shuffle, first songs included.
Co-occurrence, neighbors and plays are those of the training lists of the split. "Ahead of" pairs the models on the same
lists: the mean difference per transition with its 95 % interval by resampling whole lists. CPU seconds are those of
computing co-occurrence, building edges and fitting.

- yes_small, yes_big: radio playlists and Last.fm tags. The official test lists are absent. ``train.txt`` is split, so
  results are not comparable with those of Chen et al. (KDD 2012). Of the thesis's edges, only tags and the edge of all
  songs exist here.
- spotify: 300 named playlists, with artist and album: few lists, and most songs of a test list were never seen.
- aotm: 66,250 pairs of consecutive songs (ISMIR 2011), joined again if their ends match. It lacks the tags, sound,
  categories and original lists of AotM-2011, so the walk uses only co-occurrence ("company").
- demo: the library that the program composes, with the edges that the app builds. Its lists are generated, by
  categories that follow tags, eras and artists: the gain of dialects there says little about people's lists.

Walks: "conjunctions" are all pairs of edges. "Company" are groups of songs by co-occurrence in lists, and "neighbors"
is an edge per song with its nearest songs by co-occurrence. Neither is in the thesis. "Songs by plays" draws a song
inside an edge by its plays in training plus half a play, instead of uniformly. "bayes" leaves a song by the edge's
posterior instead of its weight. "Stationary" is memoryless (thesis 7.7.2). On the demo "the thesis" are its families of
edges (sound, listeners, era, familiarity, lyrics, tags). The app's walk also has artists, albums, company and
neighbors, and a prior by families.

All settings are the library's defaults, and none is chosen here. The defaults of company were once chosen on yes_small
and yes_big, on an 80 : 20 split with another seed. The splits differ, but the lists are the same.

Dialects: one walk per category against one for all lists, evaluated on the category's test lists. "Leaning" dialects
start from the walk of all lists, like the app's. Claims on dialects use the median over splits, like figures 7.2 and
7.3.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from benchmarks.libraries import demo_library
from benchmarks.support.columns import NUMBER_3, SHARE_3, KeptRow, KeptRows, Lines, Table, find_row
from benchmarks.support.parts import kept_parts
from benchmarks.support.report import Claim, Progress, Settings, at_least, format_lead, load_found, main
from experiments.support.playlist_models import (
    APP,
    BIGRAM,
    BOTH,
    JOINED,
    KNOWN,
    LME,
    TAGS,
    TAGS_JOINED,
    THESIS,
    THESIS_JOINED,
    WEIGHTED,
    Dialect,
    Measured,
    Result,
    Shares,
    measure_collection,
    measure_demo,
)
from experiments.support.playlists import LOADERS, demo_lists
from experiments.support.uci import one_core_each
from musicsim.evaluation import bootstrap_pairs

SHORT = {"yes_big": 1, "yes_small": 2, "aotm": 1, "demo": 4, "spotify": 2}
FULL = dict.fromkeys(SHORT, 10)
"""Splits of each collection."""

DEMO = "demo"
RADIO = ("yes_small", "yes_big")
AHEAD_OF_BIGRAM = 0.6
N_RESAMPLES = 1000
IN_THESIS = {TAGS: "25 of 25", TAGS_JOINED: "25 of 25", THESIS: "25 of 25", THESIS_JOINED: "23 of 25"}
"""Categories whose dialect is at least level with the walk of all lists (7.7.1)."""
SHARES_IN_THESIS = {"tag": 0.64, "audio": 0.26, "era": 0.22, "familiarity": 0.15}
"""Mean over the categories' walks, all features and conjunctions (7.7.3)."""
STATIONARY_IN_THESIS = "in many categories below uniform shuffle"

By = dict[tuple[str, str], list[Result]]
Row = dict[str, Any]


def lead(ours: Sequence[Result], theirs: Sequence[Result], seed: int) -> tuple[float, float, float]:
    """Return the lead in nats per transition of one model over another on the same lists, with the 95 % interval.

    Whole lists are resampled; a list in several splits is drawn with all of them.
    """
    a, b, owner = [], [], []
    for one, other in zip(ours, theirs, strict=True):
        n = one.n_transitions
        a.append(np.repeat(one.log_p / n, n))
        b.append(np.repeat(other.log_p / n, n))
        owner.append(np.repeat(one.rows, n))
    groups = np.concatenate(owner)
    return bootstrap_pairs(np.concatenate(a), np.concatenate(b), groups=groups, n=N_RESAMPLES, random_state=seed)


def log_p(result: Result) -> float:
    """Return the mean log P of a transition."""
    return float(result.log_p.sum() / result.n_transitions.sum())


def _mean_edges(results: Sequence[Result]) -> int | None:
    """Return the mean number of edges, or None for a model without edges."""
    found = [r.n_edges for r in results if r.n_edges is not None]
    return round(float(np.mean(found))) if found else None


def _spread(values: Sequence[float]) -> float | None:
    return _plain(np.std(values, ddof=1)) if len(values) > 1 else None


def _plain(value: float | np.floating[Any]) -> float:
    """Round away the last digits, which vary randomly even for uniform shuffle."""
    return round(float(value), 9) + 0.0  # avoid -0


def model_rows(by: By, seed: int) -> Iterator[Row]:
    """Yield one row per collection and model."""
    for (collection, role), results in by.items():
        of_lists, gains = [log_p(r) for r in results], [r.gain for r in results]
        row: Row = {
            "collection": collection,
            "model": results[0].model,
            "log P": _plain(np.mean(of_lists)),
            "log P sd": _spread(of_lists),
            "G": _plain(np.mean(gains)),
            "G sd": _spread(gains),
        }
        for rival in (BIGRAM, LME):
            if role != rival:
                mean, low, high = lead(results, by[collection, rival], seed)
                row[f"ahead of {rival}"] = format_lead(mean, low, high)
        row["n edges"] = _mean_edges(results)
        row["CPU seconds"] = float(np.mean([r.seconds for r in results]))
        yield row | {"test lists": len(results[0].rows), "splits": len(results)}


def _median(dialects: Sequence[Dialect], category: str, measure: str) -> float | None:
    """Return the median of a gain over splits, or None if it was not measured."""
    found = [getattr(d, measure) for d in dialects if d.category == category]
    return None if None in found else float(np.median(found))


def _categories(dialects: Sequence[Dialect]) -> list[str]:
    return sorted({d.category for d in dialects})


def dialects_ahead(dialects: Sequence[Dialect]) -> tuple[int, int]:
    """Count the categories whose own walk is at least level with that of all lists, and all categories."""
    names = _categories(dialects)
    pairs = [(_median(dialects, n, "of_dialect"), _median(dialects, n, "of_global")) for n in names]
    return sum(own >= of_all for own, of_all in pairs if own is not None and of_all is not None), len(names)


def edge_rows(by_edges: dict[str, list[Dialect]]) -> Iterator[Row]:
    """Yield a summary of figures 7.2 and 7.3: one row per set of edges."""
    for edges, dialects in by_edges.items():
        ahead, n = dialects_ahead(dialects)
        yield {
            "edges": edges,
            "G, walk of all lists": float(np.mean([d.of_global for d in dialects])),
            "G, dialects": float(np.mean([d.of_dialect for d in dialects])),
            "dialects at least level": f"{ahead} of {n}",
            "thesis dialects at least level": IN_THESIS.get(edges),
        }


def dialect_rows(by_edges: dict[str, list[Dialect]]) -> Iterator[Row]:
    """Yield one row per category: median G on all of the thesis's features with conjunctions and in the app."""
    ours, app = by_edges[THESIS_JOINED], by_edges[APP]
    for name in _categories(ours):
        yield {
            "category": name,
            "test lists": next(d.n_judged for d in ours if d.category == name),
            "G, walk of all lists": _median(ours, name, "of_global"),
            "G, dialect": _median(ours, name, "of_dialect"),
            "G, dialect leaning": _median(ours, name, "leaning"),
            "G, stationary": _median(ours, name, "stationary"),
            "thesis G, stationary": STATIONARY_IN_THESIS,
            "G, walk of all lists, app": _median(app, name, "of_global"),
            "G, dialect leaning, app": _median(app, name, "of_dialect"),
        }


def share_rows(shares: Sequence[Shares]) -> Iterator[Row]:
    """Yield figure 7.5: mean weight of each family over splits; a conjunction counts for all its families."""
    for edges in (THESIS_JOINED, APP):
        ours = [s for s in shares if s.edges == edges]
        own = [s for s in ours if s.category is not None]
        walks = {"walk of all lists": [s for s in ours if s.category is None], "mean of dialects": own}
        if edges == THESIS_JOINED:
            walks |= {c: [s for s in own if s.category == c] for c in sorted({str(s.category) for s in own})}
        kinds = list(dict.fromkeys(kind for s in ours for kind in s.shares))
        for walk, found in walks.items():
            row: Row = {"weights of": walk, "on": edges}
            yield row | {kind: float(np.mean([s.shares.get(kind, 0.0) for s in found])) for kind in kinds}
        if edges == THESIS_JOINED:
            yield {"weights of": "mean of dialects in the thesis", "on": "AotM-2011", **SHARES_IN_THESIS}


def _above(claim: str, value: float | None, goal: float) -> Claim:
    return Claim(claim, value, goal, value is not None and value > goal)


def model_claims(by: By, seed: int) -> Iterator[Claim]:
    """Yield leads in nats per transition; those of an absent collection are not measured."""

    def ahead(collection: str, better: str, worse: str) -> float | None:
        keys = (collection, better), (collection, worse)
        return lead(by[keys[0]], by[keys[1]], seed)[0] if all(key in by for key in keys) else None

    for name in RADIO:
        yield at_least(f"{name}: walk ahead of the bigram, nats", ahead(name, WEIGHTED, BIGRAM), AHEAD_OF_BIGRAM)
        yield _above(f"{name}: walk ahead of LME, nats", ahead(name, WEIGHTED, LME), 0.0)
        yield _above(f"{name}: songs by plays ahead of songs alike, nats", ahead(name, WEIGHTED, BOTH), 0.0)
        yield _above(f"{name}: conjunctions of tags ahead of tags, nats", ahead(name, JOINED, KNOWN), 0.0)
    for joined, plain in ((TAGS_JOINED, TAGS), (THESIS_JOINED, THESIS)):
        yield _above(f"demo: {joined} ahead of {plain}, nats", ahead(DEMO, joined, plain), 0.0)
    yield _above("demo: songs by plays ahead of songs alike, nats", ahead(DEMO, WEIGHTED, APP), 0.0)


def dialect_claims(by_edges: dict[str, list[Dialect]]) -> Iterator[Claim]:
    """Yield the thesis's findings about categories, on the demo."""
    for edges in (THESIS_JOINED, APP):
        ahead, n = dialects_ahead(by_edges[edges]) if edges in by_edges else (0, 0)
        share = ahead / n if n else None
        yield _above(f"demo: share of dialects at least level with the walk of all, {edges}", share, 0.5)
    ours = by_edges.get(THESIS_JOINED, [])
    leads = [
        own - without
        for name in _categories(ours)
        if (own := _median(ours, name, "of_dialect")) is not None
        and (without := _median(ours, name, "stationary")) is not None
    ]
    yield _above(
        "demo: G of the dialect above the stationary one, least of the categories", min(leads, default=None), 0.0
    )


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure every model on every split; ten splits of all collections with ``--full``."""
    seed, n_splits = settings.seed, FULL if settings.full else SHORT
    loaded = load_found(LOADERS, settings, progress)
    with demo_library(seed, progress) as library:
        loaded[DEMO] = demo_lists(library)
        folder = library.folder
    settings.facts.update(
        splits_of=n_splits,
        split_by="playlist, a quarter of each category is judged",
        songs={name: about.n_songs for name, about in loaded.items()},
        lists={name: len(about.playlists) for name, about in loaded.items()},
        hyper_parameters="the library's defaults",
    )
    by: By = {}
    by_edges: dict[str, list[Dialect]] = {}
    shares: list[Shares] = []
    kept = kept_parts("playlists", settings)
    with one_core_each() as pool:
        futures: list[tuple[str, Future[Measured]]] = []
        for name, many in n_splits.items():
            for number in range(many if name in loaded else 0):
                if name == DEMO:
                    # each run has the demo collection in a different folder
                    measure = kept.cache(measure_demo, ignore=["folder"])
                    future = pool.submit(measure, folder, loaded[name], number, seed)
                else:
                    future = pool.submit(kept.cache(measure_collection), loaded[name], number, seed)
                futures.append((name, future))
        for name, future in futures:
            results, dialects, weights = future.result()
            for r in results:
                by.setdefault((name, r.role), []).append(r)
            for d in dialects:
                by_edges.setdefault(d.edges, []).append(d)
            shares += weights
            progress(f"{name}, split {results[0].split + 1}")
    rows = [*model_rows(by, seed), *edge_rows(by_edges), *dialect_rows(by_edges), *share_rows(shares)]
    return rows, [*model_claims(by, seed), *dialect_claims(by_edges)]


# --- tables of the documents --------------------------------------------------------------------------------


def _tabulate_dialects(rows: KeptRows) -> Lines:
    yield (
        "gain over shuffling, demo", "one walk for all playlists", "one walk per kind",
        "kinds that gain at least as much from their own walk", "the same in the thesis",
    )  # fmt: skip
    for row in rows:
        if "edges" in row:
            edges = row["edges"].replace("all of", "all edges of").replace(", conj", ", with conj")
            figures = (SHARE_3(row[column]) for column in ("G, walk of all lists", "G, dialects"))
            yield edges, *figures, *(row[k] or "" for k in row if k.endswith("at least level"))


_BOTH = "company, neighbors"


_MODELS = {
    "uniform shuffle": ("uniform shuffle",),
    "popularity": ("popularity",),
    "stationary: no memory": (
        f"stationary: tags, {_BOTH}", f"stationary: {_BOTH}", "stationary: all of the thesis, conjunctions",
    ),
    "bigram, modified Kneser-Ney": ("bigram",),
    "latent Markov embedding, 16 dimensions, one bias per song": ("LME",),
    "walk: tags": ("walk: tags",),
    "walk: tags, conjunctions": ("walk: tags, conjunctions",),
    "walk: all edges of the thesis, conjunctions": ("walk: all of the thesis, conjunctions",),
    "walk: also with clusters of shared playlists": ("walk: tags, company", "walk: company"),
    "walk: also with neighborhoods on shared playlists": (
        f"walk: tags, {_BOTH}", f"walk: {_BOTH}", "walk: all of the app, conjunctions",
    ),
    "walk: also with songs weighted by plays": (
        f"walk: tags, {_BOTH}; songs by plays", f"walk: {_BOTH}; songs by plays",
        "walk: all of the app, conjunctions; songs by plays",
    ),
    "the same, with family shares from held-out playlists": (
        f"walk: tags, {_BOTH}; songs by plays, held-out shares", f"walk: {_BOTH}; songs by plays, held-out shares",
    ),
}  # fmt: skip


def _tabulate(rows: KeptRows) -> Lines:
    sets = {"yes_small": "yes small", "yes_big": "yes big", "aotm": "Art of the Mix", "demo": "demo"}
    yield "log P per transition", *sets.values()
    for said, models in _MODELS.items():
        line = []
        for name in sets:
            row: KeptRow = next((row for row in (find_row(rows, collection=name, model=m) for m in models) if row), {})
            line.append(NUMBER_3(row["log P"]) if row else "")
        yield said, *line


TABLES: dict[str, Table] = {"playlists: dialects": _tabulate_dialects, "playlists": _tabulate}


DIFFERS = {
    "of": "thesis, section 7.7",
    "splits": "as in the thesis: 10, a quarter for testing",
    "grid": "a Dirichlet prior instead of an exponential one",
    "size": "yes.com, Spotify, pairs of 2003 and the demo instead of AotM-2011, with fewer kinds of edges",
}
"""The paper's table or figure, and how even the full protocol differs from the paper's."""


if __name__ == "__main__":
    main(
        "playlists",
        __doc__.splitlines()[0],
        run,
        differs=DIFFERS,
        data=("aotm", "spotify_msd", "yes"),
        rivals=("scikit-learn",),
        has_parts=True,
        short="1 to 4 of 10 splits of each collection",
    )
