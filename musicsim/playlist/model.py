"""Playlists as random walks on a hypergraph of songs (thesis, chapter 7).

For the first song, an edge is drawn in proportion to its weight, then one of its songs. For each later song, one of the
current song's edges is drawn, then a different song from this edge. Logs are natural.

Uniform shuffle, the baseline of `relative_gain`, has a single edge with all songs. All songs are equally likely, even
if they have weights: P[x0] = 1/n, P[y | x] = 1/(n - 1).
"""

import itertools
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from musicsim._arrays import Float64Array, IntegerArray, IntpArray
from musicsim._checks import check_whole
from musicsim.playlist._ascent import Floor, maximize
from musicsim.playlist._bridge import Bridge, Weighing
from musicsim.playlist._likelihood import Likelihood, pair_matrix
from musicsim.playlist._walk import (
    Playlist,
    Restrictions,
    Steering,
    Transition,
    Versions,
    Walker,
    find_versions,
    group_codes,
)
from musicsim.playlist.counts import Counts
from musicsim.playlist.edges import describe_edge, edge_families
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.scoring import PlaylistScorer

_LAST_RESORT = 1e-9
_PAIRS_PER_BLOCK = 200_000


class PlaylistModel(PlaylistScorer, BaseEstimator):
    """Generate playlists in which each step has a reason, and learn from playlists which reasons matter.

    A random walk on a hypergraph with given edge weights, or with weights learned from playlists.

    Parameters
    ----------
    hypergraph : Hypergraph
    weights : array-like of shape (n_edges,), not negative, not all 0, or None
        Fixed weights, scaled to sum to 1, without a floor; used until `fit` is called. None requires `fit`.
    edge_probability : {"thesis", "bayes"}
        Probability with which the walk leaves song x through its edge e. For "thesis", P[e | x] is proportional to w_e.
        For "bayes", it is proportional to w_e / |e| (w_e / mass of e with song weights). This is the posterior of the
        edge given x under the model of the first song. Fitting and sampling use the same choice.
    prior : float >= 1, or array of shape (n_edges,)
        Concentration of the Dirichlet prior of the weights; it acts like prior - 1 earlier uses of each edge. The
        default, 1, is uniform on the simplex. A slightly larger value helps "thesis" if there are few playlists: for 20
        yes.com playlists and 202 tag edges, 1.1 gave a log-likelihood of -7.68 per transition instead of -7.76. For
        2,000 playlists, there was no difference. With many edges, it harms "bayes".
    uniform_floor : float, 0 <= uniform_floor < 1
        Minimum weight of the uniform edge, if there is one, in `fit`. It makes all playlists possible, except those
        with immediate repeats.
    max_iter : int; maximum number of iterations of `fit`, after which it raises a `ConvergenceWarning`
    tol : float
        `fit` ends when an iteration raises the objective by at most `tol` per observation (a transition or first song).
    accelerate : bool; use SQUAREM on the logs of the weights; False gives plain steps, for comparison
    random_state : int, numpy Generator or None; default seed of `generate`; `fit` is deterministic

    Attributes
    ----------
    weights_ : ndarray of shape (n_edges,), sums to 1
    objective_ : float; log-likelihood plus log-prior (without its constant) at `weights_`
    history_ : list of float; objective at the start and after every iteration; never decreases, except by rounding
    n_iter_ : int
    converged_ : bool
    n_skipped_ : int
        Number of transitions that `fit` skipped, because no weights can explain them: those from a song to itself, or
        (without a uniform edge) to a song without a common edge.

    See Also
    --------
    Hypergraph : The reasons.
    Dialects : One walk per kind of playlist.
    musicsim.evaluation : Measures of rankings.

    Notes
    -----
    The equations are those in section 7.5.2 of the thesis, with one departure. Both probabilities ignore the scale of
    the weights, so with the thesis's exponential prior (7.2), the objective has no maximum: it grows forever as the
    weights shrink. Here, weights are on the simplex. Exponential weights of any rate, scaled to sum to 1, are uniform
    there, as is the default prior. `fit` climbs from equal weights to a stationary point; the objective is not concave.

    An immediate repeat has probability 0, as in the thesis: `log_probability` is -inf and `fit` skips the transition.
    `score` and `relative_gain` skip the playlist and warn, because it has probability 0 under every model.

    `fit` needs about 12 bytes per pair of a distinct transition and an edge that contains both songs.

    References
    ----------
    - B. McFee and G. Lanckriet, Hypergraph models of playlist dialects, ISMIR 2012.
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, section
      7.5.

    Examples
    --------
    >>> from musicsim.playlist import PlaylistModel, build_edges
    >>> graph = build_edges(4, tags=[["calm"], ["calm"], ["loud"], ["loud"]])
    >>> model = PlaylistModel(graph).fit([[0, 1], [1, 0], [2, 3], [3, 2]])
    >>> model.transition_probabilities(0).round(2)  # from a calm song, mostly to the other calm one
    array([0., 1., 0., 0.])
    >>> playlist = model.generate(2, first=0, random_state=1)
    >>> playlist.songs, playlist.transitions[0].reason
    ((0, 1), 'both tagged calm')
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
        """Learned weights, or the given weights, scaled to sum to 1."""
        fitted = self.__dict__.get("_fitted_weights")
        if fitted is not None:
            return fitted
        if self.weights is None:
            raise NotFittedError("this PlaylistModel has no weights yet: call fit, or pass weights.")
        weights = np.asarray(self.weights, dtype=np.float64)
        n_edges = self.hypergraph.n_edges
        if weights.shape != (n_edges,):
            raise ValueError(f"weights has shape {weights.shape}, but the hypergraph has {n_edges} edges")
        if not np.all(np.isfinite(weights)) or np.any(weights < 0) or (n_edges and weights.sum() == 0):
            raise ValueError("weights must be finite and not negative, and at least one must be positive")
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
                f"prior has shape {np.shape(self.prior)}: pass one number, or one per edge ({self.hypergraph.n_edges})"
            ) from None
        if not np.all(np.isfinite(prior)) or np.any(prior < 1):
            raise ValueError("prior must be at least 1, because otherwise the objective has no maximum on the simplex")
        return prior - 1.0

    def fit(
        self, playlists: Sequence[Sequence[int]], callback: Callable[[dict[str, Any]], bool | None] | None = None
    ) -> "PlaylistModel":
        """Learn the weights from playlists as their maximum a posteriori (MAP) estimate.

        Parameters
        ----------
        playlists : sequence of sequences of int
            Song rows. Playlists with one song train only first songs (the stationary model in section 7.7.2).
        callback : callable, optional
            It is called after each iteration with a dict of ``iteration``, ``objective``, ``gain`` (of this iteration)
            and ``weights``. If it returns True, the fit stops.
        """
        graph = self.hypergraph
        if not 0 <= self.uniform_floor < 1:
            raise ValueError(f"uniform_floor={self.uniform_floor} must be in [0, 1)")
        check_whole("max_iter", self.max_iter, 1)
        if graph.n_edges == 0:
            raise ValueError("the hypergraph has no edges: a walk needs at least two songs")
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
                f"The fit ended after max_iter={self.max_iter} iterations, but the last one still gained {last:.1e} "
                f"per observation, more than tol={self.tol:.1e}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def log_probability(self, playlists: Sequence[Sequence[int]]) -> Float64Array:
        """Return log P[playlist] for each playlist, not divided by the length.

        The result is -inf if there is an immediate repeat, or a transition that no edge with positive weight explains.
        It is 0 for an empty playlist.
        """
        return self._log_probability(Counts.from_playlists(playlists, self.hypergraph.n_songs), len(playlists))

    def _log_probability(self, counts: Counts, n_playlists: int) -> Float64Array:
        graph, pull = self.hypergraph, self._pull()
        starts = range(0, len(counts.pairs), _PAIRS_PER_BLOCK)
        blocks = [pair_matrix(graph, counts.pairs[i : i + _PAIRS_PER_BLOCK]) @ pull for i in starts]
        sources = counts.pairs[:, 0]
        out = graph.incidence @ pull
        # without edges, there is only one song, and its probability is 1
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
        """Number of songs in the hypergraph."""
        return self.hypergraph.n_songs

    def _check_song(self, song: int, argument: str) -> int:
        if not isinstance(song, int | np.integer) or not 0 <= song < self.hypergraph.n_songs:
            raise ValueError(f"{argument}={song!r} must be a song from 0 to {self.hypergraph.n_songs - 1}")
        return int(song)

    def _check_songs(self, songs: Iterable[int], argument: str) -> IntpArray:
        """Return many songs as an array; whole numbers are checked all at once."""
        given = songs if isinstance(songs, np.ndarray) else list(songs)
        numbers = np.asarray(given)
        is_whole = numbers.ndim == 1 and numbers.dtype.kind in "iu"
        if is_whole and not np.any((numbers < 0) | (numbers >= self.hypergraph.n_songs)):
            return numbers.astype(np.intp)
        return np.array([self._check_song(song, argument) for song in given], dtype=np.intp)

    def first_probabilities(self) -> Float64Array:
        """Return P[x0] for every song, (n_songs,)."""
        graph = self.hypergraph
        return graph.song_weight * (graph.incidence @ (self.weights_ / graph.mass))

    def edge_probabilities(self, song: int) -> tuple[IntpArray, Float64Array]:
        """Return the ascending edges that contain `song`, and P[e | song], which is 0 if all edges have weight 0."""
        return self._edge_probabilities(self._check_song(song, "song"), self._pull())

    def _edge_probabilities(self, song: int, pull: Float64Array) -> tuple[IntpArray, Float64Array]:
        edges = self.hypergraph.edges_of(song)
        total = pull[edges].sum()
        return edges, pull[edges] / (total if total > 0 else 1.0)

    def transition_probabilities(self, song: int) -> Float64Array:
        """Return P[y | song] for every song y, (n_songs,); it sums to 1, and is 0 for `song` itself.

        All probabilities are 0 if every edge of `song` has weight 0, which is possible only with fixed weights.
        """
        graph = self.hypergraph
        edges, probabilities = self.edge_probabilities(song)
        share = np.zeros(graph.n_edges)
        share[edges] = probabilities / (graph.mass[edges] - graph.song_weight[song])
        row = graph.song_weight * (graph.incidence @ share)
        row[song] = 0.0
        return row

    def transition_edges(self, i: int, j: int) -> list[tuple[int, str, float]]:
        """Return (edge, name, P[e | i, j]) for the edges that explain song j after song i, most probable first.

        The probabilities sum to 1; ties are ordered by edge number. The list is empty if i is j, or if no edge with
        positive weight contains both.
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
        """Return the same walk restricted to `songs`, int (n,) with n >= 2; they are renumbered from 0.

        Edges keep their weights; edges with fewer than two of the songs are dropped.
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
        """Return the most probable reason for song j to follow song i, whether or not the step was generated.

        Its `probability` is P[e | i], as for generated steps. If no edge explains the pair, the edge is -1, the name is
        "" and the probability is 0.
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
        groups: Sequence[Hashable] | IntegerArray | None = None,
        spacing: int = 0,
        works: Sequence[Hashable] | IntegerArray | Versions | None = None,
        weigh: npt.ArrayLike | Weighing | None = None,
        steer: Steering | None = None,
        within: Callable[[int], IntpArray] | None = None,
        temperature: float = 1.0,
        repeat: bool = False,
        use_uniform: bool = True,
        trials: bool = False,
    ) -> Playlist:
        """Generate a playlist of `length` songs, with the edge of each step.

        Parameters
        ----------
        length : int >= 1; number of songs, including `prefix` and `fixed`
        first : int or None; opening song; if None, it is drawn from P[x0]
        random_state : int, numpy Generator or None; None means that of the model
        prefix : sequence of int; songs to keep unchanged; the walk continues after the last one
        fixed : mapping from position (0 is the first) to song, or None
            Songs at fixed positions: an end, waypoints, songs to keep. The walk is conditioned on passing through them.
        exclude : iterable of int; songs that are never drawn
        groups : sequence of shape (n_songs,), or None
            Labels such as artists. None, "", nan and negative numbers of an integer array mean no group.
        spacing : int >= 0
            A song is not drawn if its group occurs among the `spacing` previous songs, or among fixed songs that are up
            to `spacing` positions later.
        works : sequence of shape (n_songs,), a callable from a song to the songs with the same label, or None
            Labels as in `groups`, such as the work that a song is a version of. A playlist never has two songs with
            the same label.
        weigh : array of shape (n_songs,), a callable from a position to such an array or None, or None
            Weights of songs, finite and not negative; the probability of a step is multiplied by the song's weight.
        steer : callable (position, previous song, probabilities of the next song) -> array like `weigh` or None
            Factors for `weigh` that depend on the previous song. The probabilities (n_songs,) are those of the step
            without `steer`, over the allowed songs. The opening song is not steered.
        within : callable from a song to rows, or None
            The songs that the uniform edge leads to from a song, if songs have weights; None means all songs.
        temperature : float > 0
            Edges are drawn in proportion to P[e | x] |e|^(1 - 1 / temperature): an edge's energy is the log of its size
            (the entropy of the step through it). Below 1, the walk prefers small edges, whose songs have more in
            common; above 1, it prefers large ones. The opening song is not affected.
        repeat : bool; allow songs to be repeated, but not immediately
        use_uniform : bool
            If False, use the uniform edge only if no other edge has an allowed song, as for the examples in the thesis.
        trials : bool
            Compare each step with the same step without its edge, in the `trial` of its `Transition`. A step takes time
            in proportion to the sizes of the song's edges.

        Returns
        -------
        Playlist
            Its `note` lists unmet conditions. The playlist may be shorter than `length` if no allowed song is left, and
            songs from one group may be closer than `spacing` before a fixed song.

        Raises
        ------
        ValueError
            If two of `first`, `prefix` and `fixed` contradict each other.

        Notes
        -----
        The walk draws one of the current song's edges with an allowed song, in the model's proportions, then one of
        these songs. If no edge has an allowed song, it draws any allowed song. Without restrictions, steps toward a
        fixed song are exactly those of the walk conditioned on this song (and on `weigh` as likelihoods of the
        positions). The path's probabilities ignore `steer` and repeats on the way. They respect spacing only for
        fixed songs.

        Temperature is not a power of P[e | x], because edges with high weights are often large and mix styles.

        With `fixed`, this needs 12 bytes per membership, and 8 bytes per song and position in the longest gap.
        """
        graph = self.hypergraph
        check_whole("length", length, 1)
        check_whole("spacing", spacing, 0)
        if not (np.isfinite(temperature) and temperature > 0):
            raise ValueError(f"temperature={temperature} must be positive")
        restrictions = Restrictions(
            graph.n_songs,
            fixed=self._check_fixed(length, first, prefix, fixed or {}),
            exclude=self._check_songs(exclude, "exclude"),
            group=group_codes("groups", groups, graph.n_songs),
            spacing=spacing,
            works=find_versions(works, graph.n_songs),
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
            has_trials=trials,
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
        """Return the songs at fixed positions; raise ValueError unless `first`, `prefix` and `fixed` agree."""
        songs = dict(enumerate(self._check_song(song, "prefix") for song in prefix))
        if len(songs) > length:
            raise ValueError(f"prefix has {len(songs)} songs, more than length={length}")
        for argument, places in (("first", {} if first is None else {0: first}), ("fixed", fixed)):
            for place, song in places.items():
                if not 0 <= place < length:
                    raise ValueError(f"fixed has position {place}; with length={length}, it must be 0 to {length - 1}")
                if songs.setdefault(int(place), self._check_song(song, argument)) != song:
                    raise ValueError(
                        f"{argument} puts song {song} at position {place}, but song {songs[place]} is fixed there"
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
                raise ValueError("weigh must return weights that are finite and not negative")
            return weights

        return weigh_checked

    def _weaken_uniform(self, pull: Float64Array) -> Float64Array:
        """Reduce the weight of the uniform edge, so that a path uses it only as a last resort."""
        uniform = self.hypergraph.uniform_edge
        if uniform is None:
            return pull
        weak = pull.copy()
        weak[uniform] = min(pull[uniform], _LAST_RESORT * pull.sum())
        return weak

    def family_shares(self) -> dict[str, float]:
        """Return the share of each kind of knowledge in the total weight, largest first (thesis, fig. 7.5).

        A conjunction counts toward the kinds (see `edge_families`) of all its parts, so shares may sum to more than 1.
        """
        shares: dict[str, float] = {}
        for kinds, weight in zip(edge_families(self.hypergraph.names), self.weights_.tolist(), strict=True):
            for kind in kinds:
                shares[kind] = shares.get(kind, 0.0) + weight
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    def step_width(self, temperature: float = 1.0) -> float:
        """Return the number of songs that a step chooses from: the geometric mean of |e| - 1 over the steps' edges.

        It is averaged over at most 1,000 evenly spaced songs. Song weights are ignored.
        """
        graph, pull = self.hypergraph, self._pull(temperature)
        rows = np.unique(np.linspace(0, graph.n_songs - 1, 1000).astype(int))
        logs = []
        for song in rows.tolist():
            edges, p = self._edge_probabilities(song, pull)
            logs.append(float(p @ np.log(graph.sizes[edges] - 1)))
        return float(np.exp(np.mean(logs)))
