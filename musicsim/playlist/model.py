"""Playlists as random walks on a hypergraph of songs (thesis, chapter 7).

First song: draw an edge by its weight, then a song of this edge. Next song: draw an edge of the current song, then
another song of this edge. Logs are natural.

Uniform shuffle, the baseline of `relative_gain`, has a single edge with all songs, equally likely even if songs have
weights: P[x0] = 1/n, P[y | x] = 1/(n - 1).
"""

import itertools
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from musicsim._arrays import Float64Array, IntpArray
from musicsim._checks import check_whole
from musicsim.playlist._ascent import Floor, maximize
from musicsim.playlist._bridge import Bridge, Weighing
from musicsim.playlist._likelihood import Likelihood, pair_matrix
from musicsim.playlist._walk import Playlist, Restrictions, Steering, Transition, Walker, group_codes
from musicsim.playlist.counts import Counts
from musicsim.playlist.edges import describe_edge, edge_families
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.scoring import PlaylistScorer

_LAST_RESORT = 1e-9
_PAIRS_PER_BLOCK = 200_000


class PlaylistModel(PlaylistScorer, BaseEstimator):
    """A random walk on a hypergraph with given edge weights, or weights learned from playlists.

    Parameters
    ----------
    weights : array of shape (n_edges,), non-negative, not all 0, or None
        Fixed weights, used until `fit` is called (scaled to sum 1, no floor). None: the weights must be learned.
    edge_probability : {"thesis", "bayes"}
        How the walk leaves song x. "thesis": P[e | x] is proportional to w_e among the edges of x. "bayes": to
        w_e / |e| (w_e / mass of e with song weights), the posterior of the edge given x under the model of the first
        song. Fitting and sampling use the same choice.
    prior : float >= 1, or array of shape (n_edges,)
        Concentration of the Dirichlet prior of the weights; prior - 1 acts like as many earlier uses of each edge. The
        default 1 is uniform on the simplex. A little more helps "thesis" if there are few playlists: with 20 playlists
        of yes.com and 202 edges of tags, 1.1 gave -7.68 per transition instead of -7.76; with 2,000 there was no
        difference. It harms "bayes" with many edges.
    uniform_floor : float, 0 <= uniform_floor < 1
        Minimum weight of the uniform edge (if there is one) in `fit`, so that no playlist without immediate repeats
        has likelihood 0.
    max_iter : int; maximum number of iterations of `fit`; reaching it raises a `ConvergenceWarning`
    tol : float
        `fit` ends when an iteration raises the objective by less than `tol` per observation (a transition or first
        song).
    accelerate : bool
        Use SQUAREM on the logs of the weights. False: plain steps, for comparison.
    random_state : int, numpy Generator or None
        Default seed of `generate`. `fit` is deterministic.

    Attributes
    ----------
    weights_ : ndarray of shape (n_edges,), sums to 1
    objective_ : float; log-likelihood plus log-prior (without its constant) at `weights_`
    history_ : list of float; the objective at the start and after every iteration; never decreases, up to rounding
    n_iter_ : int
    converged_ : bool
    n_skipped_ : int
        Transitions that no weights can explain and `fit` skipped: a song followed by itself, or (without a uniform
        edge) by a song with which it shares no edge.

    Notes
    -----
    Equations of section 7.5.2 of the thesis. Departures: both probabilities ignore the scale of the weights, so the
    thesis's exponential prior (7.2) has no maximum: the objective grows forever as the weights shrink. Here weights
    are on the simplex. Exponential weights of any rate, scaled to sum 1, are uniform there, which is the default
    prior. The objective is not concave; `fit` starts from equal weights and climbs to a stationary point.

    An immediate repeat has probability 0, as in the thesis: `log_probability` is -inf and `fit` skips the transition.
    `score` and `relative_gain` skip the playlist and warn, because every model, including uniform shuffle, gives -inf.

    Memory of `fit`: about 12 bytes per pair of a distinct transition and an edge that contains both songs.

    Examples
    --------
    >>> from musicsim.playlist import build_edges
    >>> graph = build_edges(4, tags=[["calm"], ["calm"], ["loud"], ["loud"]])
    >>> model = PlaylistModel(graph).fit([[0, 1], [1, 0], [2, 3], [3, 2]])
    >>> model.generate(2, first=0, random_state=1).transitions[0].reason
    'both tagged calm'
    """

    def __init__(
        self,
        hypergraph: Hypergraph,
        weights: npt.ArrayLike | None = None,
        *,
        edge_probability: Literal["thesis", "bayes"] = "thesis",
        prior: float | npt.ArrayLike = 1.0,
        uniform_floor: float = 1e-3,
        max_iter: int = 500,
        tol: float = 1e-7,
        accelerate: bool = True,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.hypergraph, self.weights, self.edge_probability = hypergraph, weights, edge_probability
        self.prior, self.uniform_floor = prior, uniform_floor
        self.max_iter, self.tol, self.accelerate = max_iter, tol, accelerate
        self.random_state = random_state

    @property
    def weights_(self) -> Float64Array:
        """The learned weights, else the given ones, scaled to sum 1."""
        fitted = self.__dict__.get("_fitted_weights")
        if fitted is not None:
            return fitted
        if self.weights is None:
            raise NotFittedError("This PlaylistModel does not have weights yet; call fit or pass weights.")
        weights = np.asarray(self.weights, dtype=np.float64)
        n_edges = self.hypergraph.n_edges
        if weights.shape != (n_edges,):
            raise ValueError(f"weights has shape {weights.shape}; the hypergraph has {n_edges} edges")
        if not np.all(np.isfinite(weights)) or np.any(weights < 0) or (n_edges and weights.sum() == 0):
            raise ValueError("weights must be finite and non-negative, and one of them positive")
        return weights / weights.sum()

    def _edge_factor(self) -> Float64Array:
        """Return c such that P[e | x] is proportional to w_e c_e."""
        if self.edge_probability == "thesis":
            return np.ones(self.hypergraph.n_edges)
        if self.edge_probability == "bayes":
            return 1.0 / self.hypergraph.mass
        raise ValueError(f"edge_probability={self.edge_probability!r} must be 'thesis' or 'bayes'")

    def _pull(self, temperature: float = 1.0) -> Float64Array:
        """Return w_e c_e |e|^(1 - 1 / temperature), with the mass of e instead of |e| if songs have weights."""
        pull = self.weights_ * self._edge_factor()
        if temperature == 1.0:
            return pull
        return pull * (self.hypergraph.mass / self.hypergraph.mass.max(initial=1.0)) ** (1 - 1 / temperature)

    def _prior_counts(self) -> Float64Array:
        try:
            prior = np.broadcast_to(np.asarray(self.prior, np.float64), (self.hypergraph.n_edges,))
        except ValueError:
            raise ValueError(
                f"prior has shape {np.shape(self.prior)}; give a number or one per edge ({self.hypergraph.n_edges})"
            ) from None
        if not np.all(np.isfinite(prior)) or np.any(prior < 1):
            raise ValueError("prior must be at least 1: otherwise the objective does not have a maximum on the simplex")
        return prior - 1.0

    def fit(
        self, playlists: Sequence[Sequence[int]], callback: Callable[[dict[str, Any]], bool | None] | None = None
    ) -> "PlaylistModel":
        """Learn the weights from playlists (lists of song rows) as their MAP estimate.

        `callback` gets a dict with ``iteration``, ``objective``, ``gain`` (of the last iteration) and ``weights`` once
        per iteration; if it returns True the fit stops. Playlists of one song only train first songs: the stationary
        model of section 7.7.2.
        """
        graph = self.hypergraph
        if not 0 <= self.uniform_floor < 1:
            raise ValueError(f"uniform_floor={self.uniform_floor} must be in [0, 1)")
        check_whole("max_iter", self.max_iter, 1)
        if graph.n_edges == 0:
            raise ValueError("the hypergraph does not have edges: a walk needs two songs or more")
        counts = Counts.from_playlists(playlists, graph.n_songs)
        if counts.first_songs.size == 0:
            raise ValueError("playlists contain no songs: there is nothing to learn from")
        likelihood, n_impossible = Likelihood.from_counts(graph, counts, self._edge_factor(), self._prior_counts())
        outcome = maximize(
            likelihood,
            np.full(graph.n_edges, 1.0 / graph.n_edges),
            Floor(graph.uniform_edge, self.uniform_floor),
            max_iter=self.max_iter,
            tol=self.tol,
            accelerate=self.accelerate,
            callback=callback,
        )
        self._fitted_weights = outcome.weights
        self.history_ = outcome.history
        self.objective_ = outcome.history[-1]
        self.n_iter_ = len(outcome.history) - 1
        self.converged_ = outcome.converged
        self.n_skipped_ = int(counts.repeats.sum()) + n_impossible
        if not (outcome.converged or outcome.stopped):
            last = (outcome.history[-1] - outcome.history[-2]) / likelihood.n_observations
            warnings.warn(
                f"max_iter={self.max_iter} iterations: the last one still gained {last:.1e} per observation, "
                f"more than tol={self.tol:.1e}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def log_probability(self, playlists: Sequence[Sequence[int]]) -> Float64Array:
        """Return log P[playlist] for each playlist, natural log, not divided by the length.

        -inf for an immediate repeat, or if no edge of positive weight explains a transition; 0 for an empty playlist.
        """
        return self._log_probability(Counts.from_playlists(playlists, self.hypergraph.n_songs), len(playlists))

    def _log_probability(self, counts: Counts, n_playlists: int) -> Float64Array:
        graph, pull = self.hypergraph, self._pull()
        starts = range(0, len(counts.pairs), _PAIRS_PER_BLOCK)
        blocks = [pair_matrix(graph, counts.pairs[i : i + _PAIRS_PER_BLOCK]) @ pull for i in starts]
        sources = counts.pairs[:, 0]
        out = graph.incidence @ pull
        # without edges there is only one song, which is certain
        first = self.first_probabilities() if graph.n_edges else np.ones(graph.n_songs)
        with np.errstate(divide="ignore", invalid="ignore"):
            move = np.log(np.concatenate([np.empty(0), *blocks])) - np.log(out[sources])
            move[out[sources] == 0] = -np.inf
            start = np.log(first[counts.first_songs])
        log_p = np.zeros(n_playlists)
        np.add.at(log_p, counts.list_of, move[counts.pair_of])
        log_p[counts.first_lists] += start
        log_p[counts.repeats > 0] = -np.inf
        return log_p

    @property
    def n_songs(self) -> int:  # type: ignore[override]
        """Number of songs of the hypergraph."""
        return self.hypergraph.n_songs

    def _check_song(self, song: int, argument: str) -> int:
        if not isinstance(song, int | np.integer) or not 0 <= song < self.hypergraph.n_songs:
            raise ValueError(f"{argument}={song!r} is not a song; the hypergraph has {self.hypergraph.n_songs}, from 0")
        return int(song)

    def first_probabilities(self) -> Float64Array:
        """Return P[x0] for every song, shape (n_songs,)."""
        graph = self.hypergraph
        return graph.song_weight * (graph.incidence @ (self.weights_ / graph.mass))

    def edge_probabilities(self, song: int) -> tuple[IntpArray, Float64Array]:
        """Return the edges that contain `song`, ascending, and P[e | song]; zeros if all have weight 0."""
        return self._edge_probabilities(self._check_song(song, "song"), self._pull())

    def _edge_probabilities(self, song: int, pull: Float64Array) -> tuple[IntpArray, Float64Array]:
        edges = self.hypergraph.edges_of(song)
        total = pull[edges].sum()
        return edges, pull[edges] / (total if total > 0 else 1.0)

    def transition_probabilities(self, song: int) -> Float64Array:
        """Return P[y | song] for every song y, shape (n_songs,): sums to 1, and is 0 at `song` itself.

        Zeros if every edge of `song` has weight 0 (possible with fixed weights only).
        """
        graph = self.hypergraph
        edges, probabilities = self.edge_probabilities(song)
        share = np.zeros(graph.n_edges)
        share[edges] = probabilities / (graph.mass[edges] - graph.song_weight[song])
        row = graph.song_weight * (graph.incidence @ share)
        row[song] = 0.0
        return row

    def transition_edges(self, i: int, j: int) -> list[tuple[int, str, float]]:
        """Return (edge, name, P[e | i, j]) of the edges that explain song j after song i, most probable first.

        The probabilities sum to 1; ties are ordered by edge number. Empty if i is j, or no edge of positive weight
        contains both.
        """
        i, j = self._check_song(i, "i"), self._check_song(j, "j")
        if i == j:
            return []
        graph = self.hypergraph
        edges = np.intersect1d(graph.edges_of(i), graph.edges_of(j), assume_unique=True)
        joint = self._pull()[edges] / (graph.mass[edges] - graph.song_weight[i])
        order = [k for k in np.argsort(-joint, kind="stable") if joint[k] > 0]
        total = joint.sum()
        return [(int(edges[k]), graph.names[edges[k]], float(joint[k] / total)) for k in order]

    def restrict(self, songs: npt.ArrayLike) -> "PlaylistModel":
        """Return the same walk restricted to some songs, int (n,), n >= 2, numbered from 0; edges keep their weights.

        Edges with fewer than two of the songs are dropped.
        """
        graph = self.hypergraph
        chosen = np.asarray(songs, dtype=np.intp)
        part = graph.incidence[chosen]
        kept = np.flatnonzero(np.bincount(part.indices, minlength=graph.n_edges) >= 2)
        song_weight = graph.song_weight[chosen] if graph.weighted else None
        return PlaylistModel(
            Hypergraph(part[:, kept], [graph.names[e] for e in kept], song_weight),
            self.weights_[kept],
            edge_probability=self.edge_probability,
            random_state=self.random_state,
        )

    def explain(self, i: int, j: int) -> Transition:
        """Return the most probable reason for song j to follow song i, generated or not.

        Its `probability` is P[e | i] as for generated steps. If no edge explains the pair, the edge is -1, the name ""
        and the probability 0.
        """
        edges = self.transition_edges(i, j)
        if not edges:
            reason = "the same song again" if i == j else "nothing in common that the model knows of"
            return Transition(int(i), int(j), -1, "", 0.0, reason)
        edge, name, _ = edges[0]
        all_edges, probabilities = self.edge_probabilities(i)
        probability = float(probabilities[np.searchsorted(all_edges, edge)])
        return Transition(int(i), int(j), edge, name, probability, describe_edge(name))

    def generate(
        self,
        length: int,
        first: int | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        prefix: Sequence[int] = (),
        fixed: Mapping[int, int] | None = None,
        exclude: Iterable[int] = (),
        groups: Sequence[Hashable] | None = None,
        spacing: int = 0,
        works: Sequence[Hashable] | None = None,
        weigh: npt.ArrayLike | Weighing | None = None,
        steer: Steering | None = None,
        within: Callable[[int], IntpArray] | None = None,
        temperature: float = 1.0,
        repeat: bool = False,
        use_uniform: bool = True,
    ) -> Playlist:
        """Generate a playlist of `length` songs, with the edge of each step.

        Raises ValueError if an argument is out of range, or two of `first`, `prefix` and `fixed` contradict each other.

        Parameters
        ----------
        length : int >= 1, number of songs including `prefix` and `fixed`
        first : int or None; the opening song; None: drawn by P[x0]
        random_state : int, numpy Generator or None; None: that of the model
        prefix : sequence of int; songs to keep as they are; the walk continues from the last one
        fixed : mapping of place (0 is the first) to song, or None
            Songs at fixed places: an end, waypoints, songs to keep. In between, the walk is conditioned on passing
            through them.
        exclude : songs that are never drawn
        groups : sequence of shape (n_songs,) of labels such as artists, or None; None, "" and nan are not groups
        spacing : int >= 0
            A song is not drawn if its group occurs among the `spacing` songs before it, or the fixed ones among as
            many after it.
        works : sequence of shape (n_songs,) of labels, or None
            A playlist never has two songs with the same label, such as versions of one song.
        weigh : array of shape (n_songs,), a callable from a place to such an array or None, or None
            Weights of songs, finite and non-negative: a step counts in proportion.
        steer : callable from (place, previous song, probabilities of the next song) to such an array or None
            Factors of `weigh` that depend on the previous song. The probabilities, of shape (n_songs,), are those of
            the step without `steer`, over the allowed songs. Not called for the opening song.
        within : callable from a song to rows, or None
            The songs that the uniform edge leads to from a song, if songs have weights; None: all.
        temperature : float > 0
            Edges are drawn in proportion to P[e | x] |e|^(1 - 1 / temperature): the energy of an edge is the log of its
            size, the entropy of the step through it. Below 1 the walk prefers small edges, whose songs have more in
            common, above 1 large ones. Does not affect the opening song.
        repeat : bool; allow repeated songs, but not immediately
        use_uniform : bool
            False: use the uniform edge only if no other edge has an allowed song, as for the examples in the thesis.

        Returns
        -------
        Playlist
            Its `note` lists unmet conditions: shorter than `length` if no allowed song is left, or songs of a group
            closer than `spacing` before a fixed one.

        Notes
        -----
        The walk draws one of the current song's edges with an allowed song, in the model's proportions, then one of
        these songs. If all edges fail, it draws any allowed song of the library. Without restrictions, steps toward a
        fixed song are exactly those of the walk conditioned on it (and on `weigh` as likelihoods of the places). The
        messages ignore `steer` and that songs are not repeated on the way; they respect spacing only for fixed songs.

        Temperature is not a power of P[e | x]: the edges of highest weight are often the largest, and a walk that
        prefers them changes style often.

        Memory: with `fixed` 12 bytes per membership, and 8 bytes per song and place of the longest gap.
        """
        graph = self.hypergraph
        check_whole("length", length, 1)
        check_whole("spacing", spacing, 0)
        if not (np.isfinite(temperature) and temperature > 0):
            raise ValueError(f"temperature={temperature} must be positive")
        restrictions = Restrictions(
            graph.n_songs,
            fixed=self._check_fixed(length, first, prefix, fixed or {}),
            exclude=[self._check_song(song, "exclude") for song in exclude],
            group=group_codes("groups", groups, graph.n_songs),
            spacing=spacing,
            work=group_codes("works", works, graph.n_songs),
            repeat=repeat,
        )
        pull = self._pull(temperature)
        walker = Walker(
            graph,
            opening=self.weights_,
            edge_probabilities=lambda song: self._edge_probabilities(song, pull),
            restrictions=restrictions,
            rng=np.random.default_rng(self.random_state if random_state is None else random_state),
            use_uniform=use_uniform,
            weigh=self._check_weighing(weigh),
            steer=steer,
            within=within,
            bridge=lambda: Bridge(graph, pull if use_uniform else self._weaken_uniform(pull)),
        )
        songs, steps, note = walker.walk(length)
        transitions = [
            step or self.explain(i, j) for (i, j), step in zip(itertools.pairwise(songs), steps[1:], strict=True)
        ]
        return Playlist(tuple(songs), tuple(transitions), steps[0] if steps else None, note)

    def _check_fixed(
        self, length: int, first: int | None, prefix: Sequence[int], fixed: Mapping[int, int]
    ) -> dict[int, int]:
        """Return the songs at fixed places; `first`, `prefix` and `fixed` must agree."""
        songs = dict(enumerate(self._check_song(song, "prefix") for song in prefix))
        if len(songs) > length:
            raise ValueError(f"prefix has {len(songs)} songs, more than length={length}")
        for argument, places in (("first", {} if first is None else {0: first}), ("fixed", fixed)):
            for place, song in places.items():
                if not 0 <= place < length:
                    raise ValueError(f"fixed has place {place}; a playlist of {length} has 0 to {length - 1}")
                if songs.setdefault(int(place), self._check_song(song, argument)) != song:
                    raise ValueError(
                        f"{argument} puts song {song} at place {place}, but song {songs[place]} is fixed there"
                    )
        return songs

    def _check_weighing(self, weigh: "npt.ArrayLike | Weighing | None") -> Weighing:
        weigh_place = weigh if callable(weigh) else lambda place: weigh

        def weigh_checked(place: int) -> Float64Array | None:
            weights = weigh_place(place)
            if weights is None:
                return None
            weights = np.asarray(weights, dtype=np.float64)
            if weights.shape != (self.hypergraph.n_songs,):
                raise ValueError(f"weigh has shape {weights.shape}; it must be ({self.hypergraph.n_songs},)")
            if not np.all(np.isfinite(weights)) or np.any(weights < 0):
                raise ValueError("weigh must be finite and not negative")
            return weights

        return weigh_checked

    def _weaken_uniform(self, pull: Float64Array) -> Float64Array:
        """Reduce the weight of the uniform edge so far that a path uses it only as a last resort."""
        uniform = self.hypergraph.uniform_edge
        if uniform is None:
            return pull
        weak = pull.copy()
        weak[uniform] = min(pull[uniform], _LAST_RESORT * pull.sum())
        return weak

    def family_shares(self) -> dict[str, float]:
        """Return the share of weight of each kind of knowledge, the largest first (thesis, fig. 7.5).

        Kinds are those of `edge_families`. A conjunction counts for the kinds of all its parts, so the shares may sum
        to more than 1.
        """
        shares: dict[str, float] = {}
        for kinds, weight in zip(edge_families(self.hypergraph.names), self.weights_.tolist(), strict=True):
            for kind in kinds:
                shares[kind] = shares.get(kind, 0.0) + weight
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    def step_width(self, temperature: float = 1.0, *, n_songs: int = 1000) -> float:
        """Return the number of songs that a step chooses from: the geometric mean of |e| - 1 over the steps' edges.

        Averaged over at most `n_songs` evenly spaced songs. Sizes of edges count, even if songs have weights.
        """
        graph, pull = self.hypergraph, self._pull(temperature)
        rows = np.unique(np.linspace(0, graph.n_songs - 1, n_songs).astype(int))
        logs = []
        for song in rows.tolist():
            edges, p = self._edge_probabilities(song, pull)
            logs.append(float(p @ np.log(graph.sizes[edges] - 1)))
        return float(np.exp(np.mean(logs)))
