"""Fit walks to a library's playlists (one to all playlists, and one to each dialect), and evaluate them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import playlist
from musicsim._arrays import Int64Array
from musicsim.explorer.models.artifacts import FittedWalk, drop_walk, load_walk, save_walk
from musicsim.explorer.playlists.edges import build_hypergraph, default_weights
from musicsim.explorer.playlists.song_labels import SEED, learn_sources, read_words, replace_company
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from musicsim.progress import Progress

STRENGTH = 200.0  # the default weights count as this many transitions, so that a few playlists cannot override them
LEANING = 200.0  # in each dialect, the walk fitted on all playlists counts as this many transitions
_MIN_LISTS = 8  # minimum number of playlists per dialect
_MIN_TO_JUDGE = 20  # minimum number of playlists for an evaluation
_HELD_OUT = 0.25  # share of playlists that are held out, as in section 7.7 of the thesis
_MIN_WEIGHT = 1e-7  # smaller weights are not saved


@dataclass(frozen=True, slots=True)
class TrainingPlaylists:
    """Playlists to fit on: the rows of their songs, and their categories."""

    rows: list[list[int]]
    categories: list[str | None]

    def split(self) -> tuple[TrainingPlaylists, TrainingPlaylists]:
        """Return a random three quarters of the playlists for training, and the held-out quarter."""
        order = np.random.default_rng(SEED).permutation(len(self.rows))
        n_held_out = round(_HELD_OUT * len(order))
        return self._select(order[n_held_out:]), self._select(order[:n_held_out])

    def _select(self, places: Int64Array) -> TrainingPlaylists:
        return TrainingPlaylists([self.rows[i] for i in places], [self.categories[i] for i in places])


def collect_playlists(snapshot: Snapshot) -> TrainingPlaylists:
    """Return people's playlists of at least two songs, without immediate repetitions and songs that lack a vector."""
    lists = TrainingPlaylists([], [])
    for saved in snapshot.library.saved_playlists.made_by_people():
        rows = snapshot.rows_of(saved.song_ids)
        rows = rows[rows >= 0]
        rows = rows[np.diff(rows, prepend=-1) != 0]
        if len(rows) > 1:
            lists.rows.append(rows.tolist())
            lists.categories.append(saved.category)
    return lists


def refit_walks(library: Library, progress: Progress) -> None:
    """Refit the walks of all models on the library's playlists, plays and tags."""
    with library.exclusive("fitting playlist walks"):
        read_words(library, progress)
        for record in library.models.all():
            fit_walk(library, record.id, progress)


def _digest(graph: playlist.Hypergraph, lists: TrainingPlaylists) -> str:
    digest = hashlib.sha256("\n".join([*graph.names, *map(str, lists.categories)]).encode("utf-8", "replace"))
    for part in (graph.incidence.indptr, graph.incidence.indices, *(np.array(rows) for rows in lists.rows)):
        digest.update(part.astype(np.int64).tobytes() + b"|")
    return digest.hexdigest()


def fit_walk(library: Library, model_id: str, progress: Progress) -> None:
    """Fit the walk's weights on the library's playlists and store them next to a model.

    Returns immediately if neither edges nor playlists have changed. If there are enough playlists, a first fit measures
    the gains over shuffling on a held-out quarter. The stored weights are fitted on all playlists.
    """
    snapshot = take_snapshot(library, model_id)
    if snapshot.record is None or not snapshot.n_indexed:
        return
    lists = collect_playlists(snapshot)
    sources = learn_sources(snapshot, lists.rows, progress)
    folder = library.models.path(snapshot.record.id)
    if not lists.rows:
        drop_walk(folder)  # all playlists were deleted
        return

    graph = build_hypergraph(snapshot, sources, own=False)
    digest = _digest(graph, lists)
    last = load_walk(folder)
    if last is not None and last.facts.get("fitted_on") == digest:
        return

    def graph_of(part: TrainingPlaylists) -> playlist.Hypergraph:
        if part is lists:
            return graph
        return build_hypergraph(snapshot, replace_company(sources, part.rows, progress), own=False)

    progress("evaluating on held-out playlists")
    facts, gains = _evaluate(lists, graph_of)
    progress("fitting the playlist walk")
    fitted = fit_dialects(lists, graph_of)
    weights = np.stack([fitted.global_.weights_, *(m.weights_ for m in fitted.models_.values())])
    facts["fitted_on"] = digest
    facts["dialects"] = [
        {"name": name, "n_playlists": n, **gains.get(name, {"gain": None, "gain_global": None})}
        for name, n in fitted.n_playlists_.items()
    ]
    saved = np.flatnonzero(weights.max(axis=0) > _MIN_WEIGHT)
    save_walk(folder, FittedWalk([graph.names[e] for e in saved], weights[:, saved], facts))
    library.note_change()


def _evaluate(
    lists: TrainingPlaylists, graph_of: Callable[[TrainingPlaylists], playlist.Hypergraph]
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Return facts, including the gain on a held-out quarter of the playlists, and the gains of each dialect."""
    if len(lists.rows) < _MIN_TO_JUDGE:
        return {"n_playlists": len(lists.rows), "n_judged": 0, "gain": None}, {}
    train, test = lists.split()
    fitted = fit_dialects(train, graph_of)
    gains = {
        name: {"gain": gain.of_dialect, "gain_global": gain.of_global}
        for name, gain in fitted.gains(test.rows, test.categories).items()
    }
    gain = fitted.model().relative_gain(test.rows)
    return {"n_playlists": len(lists.rows), "n_judged": len(test.rows), "gain": gain}, gains


def fit_dialects(
    lists: TrainingPlaylists, graph_of: Callable[[TrainingPlaylists], playlist.Hypergraph]
) -> playlist.Dialects:
    """Fit the walk for all playlists, and the walks for the dialects.

    `graph_of` builds edges, including some from the co-occurrence of songs in the given playlists. These edges explain
    the same playlists too well, so a fit on held-out playlists corrects the shares of the families.
    """
    fitted = _fit(graph_of(lists), lists)
    if len(lists.rows) < _MIN_TO_JUDGE or "company" not in fitted.model().family_shares():
        return fitted
    company, held_out = lists.split()
    uncategorized = TrainingPlaylists(held_out.rows, [None] * len(held_out.rows))
    unbiased = _fit(graph_of(company), uncategorized, STRENGTH / 2)
    return fitted.reweight(playlist.kind_factors(fitted.model(), unbiased.model()))


def _fit(graph: playlist.Hypergraph, lists: TrainingPlaylists, strength: float = STRENGTH) -> playlist.Dialects:
    from sklearn.exceptions import ConvergenceWarning

    dialects = playlist.Dialects(
        graph, prior=1.0 + strength * default_weights(graph.names), strength=LEANING, min_playlists=_MIN_LISTS
    )
    with warnings.catch_warnings():
        # converging further would change the likelihood by thousandths of a nat, which is inaudible
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dialects.fit(lists.rows, lists.categories)
