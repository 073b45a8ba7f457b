"""Fitting the walk of a library on its playlists: one for all, one a dialect, and what each is worth."""

import hashlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from musicsim.explorer.artifacts import FittedWalk, drop_walk, load_walk, save_walk
from musicsim.explorer.progress import Tell
from musicsim.explorer.snapshot import Snapshot, take_snapshot
from musicsim.explorer.walk_edges import build_hypergraph, default_weights
from musicsim.explorer.walk_sources import learn_sources, with_company_of
from musicsim.library import Library
from musicsim.playlist import Dialects, Hypergraph

__all__ = ["fit_walk", "refit_walks"]

SEED = 0
_STRENGTH = 200.0  # transitions that the weights by family count for: a few lists do not turn the walk over
_LEANING = 200.0  # transitions of the walk of all lists that a dialect begins with
_FEWEST_LISTS = 8  # of a dialect
_FEWEST_TO_JUDGE = 20
_JUDGED = 0.25  # thesis 7.7 keeps back a quarter
_WORTH_KEEPING = 1e-7


@dataclass(frozen=True, slots=True)
class _Lists:
    """Playlists as rows of the songs, with their categories."""

    rows: list[list[int]]
    categories: list[str | None]

    def some(self, chosen: npt.NDArray[np.int64]) -> "_Lists":
        return _Lists([self.rows[i] for i in chosen], [self.categories[i] for i in chosen])


def _lists(snapshot: Snapshot) -> _Lists:
    """The library's playlists; songs without a vector are passed over, and a song right after itself."""
    playlists = snapshot.library.playlists()
    row_of = snapshot.row_of if playlists else {}  # which reads every song
    found = _Lists([], [])
    for playlist in playlists:
        rows: list[int] = []
        for i in playlist.song_ids:
            if i in row_of and row_of[i] != (rows[-1] if rows else None):
                rows.append(row_of[i])
        if len(rows) > 1:
            found.rows.append(rows)
            found.categories.append(playlist.category)
    return found


def refit_walks(library: Library, tell: Tell) -> None:
    """Bring the walks of all models up to the library's playlists, plays and tags."""
    with library.exclusive():
        for record in library.models.all():
            fit_walk(library, record.id, tell)


def _digest(graph: Hypergraph, lists: _Lists) -> str:
    """What the weights are fitted on, as a hash."""
    found = hashlib.sha256("\n".join([*graph.names, *map(str, lists.categories)]).encode("utf-8", "replace"))
    for part in (graph.incidence.indptr, graph.incidence.indices, *(np.array(rows) for rows in lists.rows)):
        found.update(part.astype(np.int64).tobytes() + b"|")
    return found.hexdigest()


def fit_walk(library: Library, model_id: str, tell: Tell) -> None:
    """Fit the walk's weights on the library's playlists and keep them beside a model.

    Nothing is done where neither the edges nor the lists have changed. Where there are enough lists, a quarter is
    kept back first, to say what the walk and each dialect gain over shuffling; what is kept is then fitted on all.

    Parameters
    ----------
    library : Library
    model_id : str
    tell : callable
    """
    snapshot = take_snapshot(library, model_id)
    if snapshot.record is None or not snapshot.indexed:
        return
    lists = _lists(snapshot)
    sources = learn_sources(snapshot, lists.rows, tell)
    folder = library.models.path(snapshot.record.id)
    if not lists.rows:
        drop_walk(folder)  # of lists that have gone since
        return
    graph = build_hypergraph(snapshot, sources, own=False)
    digest = _digest(graph, lists)
    last = load_walk(folder)
    if last is not None and last.facts.get("fitted_on") == digest:
        return
    facts: dict[str, Any] = {
        "n_playlists": len(lists.rows), "n_judged": 0, "gain": None, "fitted_on": digest,
    }  # fmt: skip
    gains: dict[str, tuple[float, float]] = {}
    if len(lists.rows) >= _FEWEST_TO_JUDGE:
        tell("asking the walk about playlists it has not seen")
        order = np.random.default_rng(SEED).permutation(len(lists.rows))
        n_judged = round(_JUDGED * len(order))
        train, test = lists.some(order[n_judged:]), lists.some(order[:n_judged])
        judged = _fit(
            build_hypergraph(snapshot, with_company_of(sources, train.rows, tell), own=False), train
        )
        gains = {
            name: (gain.of_dialect, gain.of_global)
            for name, gain in judged.gains(test.rows, test.categories).items()
        }
        facts |= {"n_judged": n_judged, "gain": judged.global_.relative_gain(test.rows)}
    tell("fitting the playlist walk")
    fitted = _fit(graph, lists)
    weights = np.stack([fitted.global_.weights_, *(m.weights_ for m in fitted.models_.values())])
    facts["dialects"] = [
        {"name": name, "n_playlists": n, "gain": gains.get(name, (None, None))[0],
         "gain_global": gains.get(name, (None, None))[1]}
        for name, n in fitted.n_playlists_.items()
    ]  # fmt: skip
    kept = np.flatnonzero(weights.max(axis=0) > _WORTH_KEEPING)
    save_walk(folder, FittedWalk([graph.names[e] for e in kept], weights[:, kept], facts))
    library.note_change()


def _fit(graph: Hypergraph, lists: _Lists) -> Dialects:
    dialects = Dialects(
        graph,
        prior=1.0 + _STRENGTH * default_weights(graph.names),
        strength=_LEANING,
        min_playlists=_FEWEST_LISTS,
    )
    with warnings.catch_warnings():
        # the last thousandths of a nat are nothing that is heard
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dialects.fit(lists.rows, lists.categories)
