"""Fitting the walk of a library on its playlists: one for all, one a dialect, and what each is worth."""

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
from musicsim.explorer.playlists.song_labels import SEED, learn_sources, read_words, with_company_of
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library import Library
from musicsim.progress import Progress

STRENGTH = 200.0  # transitions that the weights by family count for: a few lists do not turn the walk over
LEANING = 200.0  # transitions of the walk of all lists that a dialect begins with
_MIN_LISTS = 8  # of a dialect
_MIN_TO_JUDGE = 20
_KEPT_BACK = 0.25  # thesis 7.7 keeps back a quarter
_WORTH_KEEPING = 1e-7


@dataclass(frozen=True, slots=True)
class Lists:
    """Playlists as the walk is fitted on them: rows of songs, with their categories."""

    rows: list[list[int]]
    categories: list[str | None]

    def kept_back(self, share: float) -> tuple[Lists, Lists]:
        """All but a share of the lists, and these; drawn with :data:`SEED`."""
        order = np.random.default_rng(SEED).permutation(len(self.rows))
        n_back = round(share * len(order))
        return self.some(order[n_back:]), self.some(order[:n_back])

    def some(self, chosen: Int64Array) -> Lists:
        """These of the lists, in this order."""
        return Lists([self.rows[i] for i in chosen], [self.categories[i] for i in chosen])


def listed(snapshot: Snapshot, *, generated: bool = True) -> Lists:
    """The library's playlists, without those generated here if so asked; songs without a vector are passed over, and a
    song right after itself."""
    found = Lists([], [])
    for saved in snapshot.library.playlists():
        if saved.is_generated and not generated:
            continue
        rows = snapshot.rows_of(saved.song_ids)
        rows = rows[rows >= 0]
        rows = rows[np.diff(rows, prepend=-1) != 0]
        if len(rows) > 1:
            found.rows.append(rows.tolist())
            found.categories.append(saved.category)
    return found


def refit_walks(library: Library, progress: Progress) -> None:
    """Bring the walks of all models up to the library's playlists, plays and tags."""
    with library.exclusive("fitting playlist walks"):
        read_words(library, progress)
        for record in library.models.all():
            fit_walk(library, record.id, progress)


def _digest(graph: playlist.Hypergraph, lists: Lists) -> str:
    """What the weights are fitted on, as a hash."""
    found = hashlib.sha256("\n".join([*graph.names, *map(str, lists.categories)]).encode("utf-8", "replace"))
    for part in (graph.incidence.indptr, graph.incidence.indices, *(np.array(rows) for rows in lists.rows)):
        found.update(part.astype(np.int64).tobytes() + b"|")
    return found.hexdigest()


def fit_walk(library: Library, model_id: str, progress: Progress) -> None:
    """Fit the walk's weights on the library's playlists, with the words read before, and store them next to a model.

    Nothing is done where neither the edges nor the lists have changed. Where there are enough lists, a quarter is
    kept back first, to say what the walk and each dialect gain over shuffling; what is kept is then fitted on all.
    """
    snapshot = take_snapshot(library, model_id)
    if snapshot.record is None or not snapshot.n_indexed:
        return
    lists = listed(snapshot)
    sources = learn_sources(snapshot, lists.rows, progress)
    folder = library.models.path(snapshot.record.id)
    if not lists.rows:
        drop_walk(folder)  # of lists that have gone since
        return

    graph = build_hypergraph(snapshot, sources, own=False)
    digest = _digest(graph, lists)
    last = load_walk(folder)
    if last is not None and last.facts.get("fitted_on") == digest:
        return

    def graph_of(made_of: Lists) -> playlist.Hypergraph:
        if made_of is lists:
            return graph
        return build_hypergraph(snapshot, with_company_of(sources, made_of.rows, progress), own=False)

    progress("evaluating on held-out playlists")
    facts, gains = _judged(lists, graph_of)
    progress("fitting the playlist walk")
    fitted = fit_dialects(lists, graph_of)
    weights = np.stack([fitted.global_.weights_, *(m.weights_ for m in fitted.models_.values())])
    facts["fitted_on"] = digest
    facts["dialects"] = [
        {"name": name, "n_playlists": n, **gains.get(name, {"gain": None, "gain_global": None})}
        for name, n in fitted.n_playlists_.items()
    ]
    kept = np.flatnonzero(weights.max(axis=0) > _WORTH_KEEPING)
    save_walk(folder, FittedWalk([graph.names[e] for e in kept], weights[:, kept], facts))
    library.note_change()


def _judged(
    lists: Lists, graph_of: Callable[[Lists], playlist.Hypergraph]
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """What the walk of all lists gains on a quarter that it has not seen, and what each dialect does."""
    if len(lists.rows) < _MIN_TO_JUDGE:
        return {"n_playlists": len(lists.rows), "n_judged": 0, "gain": None}, {}
    train, test = lists.kept_back(_KEPT_BACK)
    judged = fit_dialects(train, graph_of)
    gains = {
        name: {"gain": gain.of_dialect, "gain_global": gain.of_global}
        for name, gain in judged.gains(test.rows, test.categories).items()
    }
    gain = judged.model().relative_gain(test.rows)
    return {"n_playlists": len(lists.rows), "n_judged": len(test.rows), "gain": gain}, gains


def fit_dialects(lists: Lists, graph_of: Callable[[Lists], playlist.Hypergraph]) -> playlist.Dialects:
    """Fit the walk of all lists and the dialects.

    Shares of families are as on lists that company was not heard from: `graph_of` builds the edges with the company
    that songs keep on the given lists.
    """
    fitted = _fit(graph_of(lists), lists)
    if len(lists.rows) < _MIN_TO_JUDGE or "company" not in fitted.model().family_shares():
        return fitted
    heard, others = lists.kept_back(_KEPT_BACK)
    fewer = Lists(others.rows, [None] * len(others.rows))
    held_out = _fit(graph_of(heard), fewer, STRENGTH / 2)
    return fitted.reweighted(playlist.kind_factors(fitted.model(), held_out.model()))


def _fit(graph: playlist.Hypergraph, lists: Lists, strength: float = STRENGTH) -> playlist.Dialects:
    from sklearn.exceptions import ConvergenceWarning

    dialects = playlist.Dialects(
        graph, prior=1.0 + strength * default_weights(graph.names), strength=LEANING, min_playlists=_MIN_LISTS
    )
    with warnings.catch_warnings():
        # the last thousandths of a nat are nothing that is heard
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dialects.fit(lists.rows, lists.categories)
