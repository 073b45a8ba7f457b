"""The playlist model at the size of AotM-2011: time and memory of a fit, its scaling, and the time of playlists.

The collection is generated: 98,359 songs in 6,390 edges, one of which contains all songs. A song is in 76.46 +- 57.79
edges, at most 218 (thesis, section 7.7). There are 209,485 segments of two songs or more (its table 7.1). The thesis
does not print the lengths of the segments. They are two plus a geometric number, four on average, which makes ten
matched songs for each of the 86,310 playlists.

Degrees come from a beta distribution with the printed moments, sizes of edges from a Pareto distribution; songs of one
of 50 styles prefer the same edges. The segments are walks by hidden weights (log-normal, sigma 2; 0.02 for the edge of
all songs), so that there is structure to learn. `truth` is their log-likelihood per observation, to be compared with
`objective`, that of the fit.

`build_s` is the time for reading the playlists and building the likelihood, `ascent_s` the rest of `PlaylistModel.fit`.
`mb` is the peak memory of a process that fits once, including libraries, collection and playlists; `mb_before` is the
peak before the fit. With twice the songs each edge has twice as many songs; with twice the edges a song is in twice as
many.

Rival: L-BFGS of scipy, which the thesis uses, on the same sparse rows. The weights are a softmax there, without bounds.
`reached_s` is the time at which it came within 1e-4 nats per observation of our objective. `ended` is the reason that
it ended: the tolerance, or the limit of time (60 s in the short form, 600 s in the full one).
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

from benchmarks.mlr import peak_bytes
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main
from musicsim._arrays import Float64Array, Int64Array
from musicsim.playlist import Hypergraph, PlaylistModel
from musicsim.playlist._likelihood import Counts, Likelihood

_N_STYLES = 50
_HIDDEN_UNIFORM = 0.02
_MEAN_LENGTH = 4
_MEAN_EDGES, _SD_EDGES, _MAX_EDGES = 76.46, 57.79, 218
_NEAR = 1e-4
_N_GENERATED, _LENGTH = 1000, 20


class Size(NamedTuple):
    """The size of a collection and its playlists."""

    songs: int = 98_359
    edges: int = 6_390
    playlists: int = 209_485

    def scaled(self, axis: str, factor: float) -> "Size":
        return self._replace(**{axis: round(getattr(self, axis) * factor)})


# --- the collection -------------------------------------------------------------------------------


def edges_a_song(size: Size, rng: np.random.Generator) -> Int64Array:
    """Draw the number of edges of each song, without the edge of all songs."""
    scale = size.edges / Size().edges
    top = _MAX_EDGES * scale - 1
    mean = (_MEAN_EDGES * scale - 1) / top
    both = mean * (1 - mean) / (_SD_EDGES * scale / top) ** 2 - 1
    return np.rint(top * rng.beta(mean * both, (1 - mean) * both, size.songs)).astype(np.int64)


def incidence(size: Size, seed: int) -> sparse.csr_array:
    """Draw the edges of each song, those of its style more often; the last edge contains all songs."""
    rng = np.random.default_rng([seed, 0])
    n_edges = size.edges - 1
    degrees = edges_a_song(size, rng)
    popularity = np.minimum(rng.pareto(1.5, n_edges) + 1.5, 20.0)
    affinity = np.exp(rng.standard_normal((_N_STYLES, n_edges))) * popularity
    style = rng.integers(0, _N_STYLES, size.songs)
    keys = []
    for k in range(_N_STYLES):
        songs = np.flatnonzero(style == k)
        cumulated = np.cumsum(affinity[k])
        # draw three times as many edges as needed, because some repeat; use the first different ones
        owner = np.repeat(songs, 3 * degrees[songs] + 10)
        drawn = np.searchsorted(cumulated, rng.random(owner.size) * cumulated[-1])
        key = owner * n_edges + np.minimum(drawn, n_edges - 1)
        key = key[np.sort(np.unique(key, return_index=True)[1])]
        owner = key // n_edges
        place = np.arange(owner.size) - np.searchsorted(owner, owner)
        keys.append(key[place < degrees[owner]])
    rows, columns = np.divmod(np.concatenate(keys), n_edges)
    drawn = sparse.csr_array((np.ones(rows.size, dtype=bool), (rows, columns)), shape=(size.songs, n_edges))
    return sparse.csr_array(sparse.hstack([drawn, np.ones((size.songs, 1), dtype=bool)]))


def hidden_weights(n_edges: int, seed: int) -> Float64Array:
    w = np.random.default_rng([seed, 1]).lognormal(0.0, 2.0, n_edges)
    w[-1] = 0.0
    w *= (1.0 - _HIDDEN_UNIFORM) / w.sum()
    w[-1] = _HIDDEN_UNIFORM
    return w


def walks(graph: Hypergraph, w: Float64Array, n_playlists: int, seed: int) -> list[list[int]]:
    """Walk all playlists at once by the weights w; the longest come first."""
    rng = np.random.default_rng([seed, 2])
    by_song, by_edge = graph.incidence, sparse.csc_array(graph.incidence)
    cumulated = np.concatenate([[0.0], np.cumsum(w[by_song.indices])])

    def member(edges: npt.NDArray[Any]) -> npt.NDArray[Any]:
        start, stop = by_edge.indptr[edges], by_edge.indptr[edges + 1]
        return by_edge.indices[start + (rng.random(edges.size) * (stop - start)).astype(np.int64)]

    lengths = np.sort(1 + rng.geometric(1 / (_MEAN_LENGTH - 1), n_playlists))[::-1]
    songs = np.full((n_playlists, lengths[0]), -1, dtype=np.int64)
    songs[:, 0] = member(rng.choice(graph.n_edges, n_playlists, p=w))
    for t in range(1, lengths[0]):
        n_left = np.count_nonzero(lengths > t)
        present = songs[:n_left, t - 1]
        start, stop = by_song.indptr[present], by_song.indptr[present + 1]
        mark = cumulated[start] + rng.random(n_left) * (cumulated[stop] - cumulated[start])
        place = np.clip(np.searchsorted(cumulated, mark, side="right") - 1, start, stop - 1)
        edges = by_song.indices[place]
        following = member(edges)
        while (same := np.flatnonzero(following == present)).size:
            following[same] = member(edges[same])
        songs[:n_left, t] = following
    return [row[:length].tolist() for row, length in zip(songs, lengths, strict=True)]


def collection(size: Size, seed: int) -> tuple[Hypergraph, list[list[int]]]:
    """Make the hypergraph, and playlists that follow its hidden weights."""
    names = [*(f"tag:{e}" for e in range(size.edges - 1)), "uniform:all"]
    graph = Hypergraph(incidence(size, seed), names)
    return graph, walks(graph, hidden_weights(size.edges, seed), size.playlists, seed)


# --- parts ----------------------------------------------------------------------------------------


def likelihood_of(graph: Hypergraph, playlists: list[list[int]]) -> Likelihood:
    """Build the default objective of `fit`."""
    ones, prior = np.ones(graph.n_edges), np.zeros(graph.n_edges)
    return Likelihood.from_counts(graph, Counts.from_playlists(playlists, graph.n_songs), ones, prior)[0]


def fit_row(size: Size, seed: int) -> tuple[Row, PlaylistModel]:
    """Run one fit; its memory is meaningful only in a separate process."""
    graph, playlists = collection(size, seed)
    model = PlaylistModel(graph)
    before = peak_bytes()
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(playlists)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_bytes()
    start = time.perf_counter()
    likelihood = likelihood_of(graph, playlists)
    build = time.perf_counter() - start
    n = likelihood.n_observations
    row = {
        "method": "musicsim",
        **size._asdict(),
        "wall_s": round(wall, 2),
        "cpu_s": round(cpu, 2),
        "build_s": round(build, 2),
        "ascent_s": round(wall - build, 2),
        "iterations": model.n_iter_,
        "objective": model.objective_ / n,
        "truth": likelihood.evaluate(hidden_weights(size.edges, seed))[0] / n,
        "mb": round(peak / 1e6),
        "mb_before": round(before / 1e6),
    }
    return row, model


def fit_and_generate(size: Size, seed: int) -> tuple[Row, float]:
    """Fit once, then time a thousand playlists of the model; return the row and the seconds."""
    row, model = fit_row(size, seed)
    start = time.perf_counter()
    for number in range(_N_GENERATED):
        model.generate(_LENGTH, random_state=number)
    return row, time.perf_counter() - start


def growth_row(size: Size, seed: int) -> Row:
    return fit_row(size, seed)[0]


def rival_row(size: Size, seed: int, ours: float, tol: float, limit_s: float) -> Row:
    """Run L-BFGS on log weights that are scaled to sum 1, to the tolerance of `PlaylistModel`."""
    likelihood = likelihood_of(*collection(size, seed))
    n = likelihood.n_observations
    started, cpu = time.perf_counter(), time.process_time()
    reached: list[float] = []

    def negative(theta: Float64Array) -> tuple[float, Float64Array]:
        w = np.exp(theta - theta.max())
        w /= w.sum()
        objective, gain, cost = likelihood.evaluate(w)
        if objective / n >= ours - _NEAR:
            reached.append(time.perf_counter() - started)
        return -objective / n, (cost * w - gain) / n

    # scipy compares the gain of an iteration with the objective itself
    def watch(_: Float64Array) -> None:
        if time.perf_counter() - started > limit_s:
            raise StopIteration

    options = {"maxiter": 2000, "maxfun": 4000, "ftol": tol / abs(ours), "gtol": 0.0}
    found = optimize.minimize(
        negative, np.zeros(size.edges), jac=True, method="L-BFGS-B", callback=watch, options=options
    )
    return {
        "method": "L-BFGS, ascent only",
        **size._asdict(),
        "ascent_s": round(time.perf_counter() - started, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
        "iterations": found.nit,
        "evaluations": found.nfev,
        "objective": -found.fun,
        "reached_s": round(reached[0], 2) if reached else None,
        "ended": "tolerance" if found.success else "time",
    }


def sizes_to_grow(full: bool) -> dict[str, list[Size]]:
    factors = (0.25, 0.5, 2.0, 4.0) if full else (0.5, 2.0)
    return {axis: [Size().scaled(axis, factor) for factor in factors] for axis in Size._fields}


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    seed, rows = settings.seed, []
    # spawned, so that the children start without the memory of this process
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        ours, generation = pool.submit(fit_and_generate, Size(), seed).result()
        progress(f"fit: {ours['wall_s']} s, {ours['mb']} MB; {_N_GENERATED} playlists: {generation:.1f} s")
        tol = PlaylistModel(None).tol
        limit_s = 600.0 if settings.full else 60.0
        theirs = pool.submit(rival_row, Size(), seed, ours["objective"], tol, limit_s).result()
        progress(f"L-BFGS: {theirs['ascent_s']} s, objective {theirs['objective']:.5f}")
        rows += [ours, theirs]
        for axis, sizes in sizes_to_grow(settings.full).items():
            grown = [pool.submit(growth_row, size, seed).result() for size in sizes]
            slope = np.polyfit(
                np.log([row[axis] for row in [ours, *grown]]), np.log([row["cpu_s"] for row in [ours, *grown]]), 1
            )[0]
            settings.facts[f"exponent of CPU seconds in {axis}"] = round(float(slope), 2)
            progress(f"{axis}: {[row['cpu_s'] for row in grown]} CPU s")
            rows += grown
    settings.facts["seconds of 1,000 playlists of 20 songs"] = round(generation, 2)
    claims = [
        at_most("fit of AotM-2011's size, s", ours["wall_s"], 10.0),
        at_most("its peak memory, GiB", ours["mb"] * 1e6 / 2**30, 3.0),
        at_most("1,000 playlists of 20 songs, s", round(generation, 2), 5.0),
        at_least("seconds of L-BFGS over ours, the ascent", theirs["ascent_s"] / ours["ascent_s"], 1.0),
        at_least("objective an observation less L-BFGS's", ours["objective"] - theirs["objective"], -_NEAR),
    ]
    return rows, claims


if __name__ == "__main__":
    main(
        "playlist", "playlist model at AotM-2011's size", run,
        short="a limit of 60 s instead of 600 s for L-BFGS, and sizes from half to twice instead of a quarter "
        "to four times. This is final, because L-BFGS reaches its tolerance within the limit",
    )  # fmt: skip
