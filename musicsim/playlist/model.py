"""Playlists as random walks on a hypergraph of songs (thesis, chapter 7).

The first song: an edge is drawn by its weight, then a song of this edge. Each next song: an edge is drawn
among those that hold the present song, then another song of this edge. Logs are natural.

Uniform shuffle, the yardstick of `relative_gain`, is the model whose only edge holds every song, each
equally likely whatever the song weights: P[x0] = 1/n, P[y | x] = 1/(n - 1).
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
from musicsim.playlist._ascent import Floor, maximise
from musicsim.playlist._bridge import Bridge, Weighing
from musicsim.playlist._likelihood import Likelihood, pair_matrix
from musicsim.playlist._walk import Playlist, Restrictions, Steering, Transition, Walker, group_codes
from musicsim.playlist.counts import Counts
from musicsim.playlist.edges import describe_edge, edge_families
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.scoring import PlaylistScorer

_LAST_RESORT = 1e-9
_PAIRS_AT_ONCE = 200_000


class PlaylistModel(PlaylistScorer, BaseEstimator):
    """A random walk on a hypergraph whose edge weights are given, or learned from playlists.

    Parameters
    ----------
    weights : array of shape (n_edges,), non-negative, not all 0, or None
        Fixed weights, used as they are (scaled to sum 1, no floor) until `fit` is called. None: the
        weights must be learned.
    edge_probability : {"thesis", "bayes"}
        How the walk leaves song x. "thesis": P[e | x] is proportional to w_e among the edges that hold
        x. "bayes": to w_e / |e| (w_e / mass of e with song weights), the posterior of the edge given x
        under the model of the first song. Sampling follows the same choice as fitting.
    prior : float >= 1, or array of shape (n_edges,)
        Concentration of the Dirichlet prior of the weights; prior - 1 counts as so many uses of each edge
        seen before. 1, the default, is the uniform distribution over the simplex. A little more helps
        "thesis" when playlists are few: 1.1 with 20 lists of yes.com and 202 edges of tags gave -7.68 a
        transition instead of -7.76, with 2 000 lists no difference. It harms "bayes" with many edges.
    uniform_floor : float, 0 <= uniform_floor < 1
        `fit` keeps at least this weight on the uniform edge (if there is one), so that no playlist
        without immediate repeats has likelihood 0.
    max_iter : int
        Limit of iterations of `fit`; a `ConvergenceWarning` says when it was met.
    tol : float
        `fit` ends when an iteration raises the objective by less than `tol` an observation (a
        transition or first song).
    accelerate : bool
        Use SQUAREM on the logs of the weights. False: plain steps, for comparison.
    random_state : int, numpy Generator or None
        Seed of `generate` where that is given none of its own. `fit` involves no chance.

    Attributes
    ----------
    weights_ : ndarray of shape (n_edges,), sums to 1
    objective_ : float
        Log-likelihood plus log-prior (without its constant) at `weights_`.
    history_ : list of float
        The objective at the start and after every iteration; never falls, up to rounding.
    n_iter_ : int
    converged_ : bool
    n_skipped_ : int
        Transitions that `fit` left out because no weights could explain them: a song followed by itself,
        or (without a uniform edge) by one with which it shares no edge.

    Notes
    -----
    Equations of section 7.5.2 of the thesis. Departures: both probabilities ignore the scale of the
    weights, so that the exponential prior of the thesis (7.2) has no maximum: the objective rises for
    ever as the weights shrink. Weights here live on the simplex. Exponential weights of any rate, scaled to
    sum 1, are uniform there, which is the default prior. The objective is not concave; `fit` starts from
    equal weights and climbs to a stationary point.

    An immediate repeat has probability 0, as in the thesis: `log_probability` is then -inf; `fit` leaves
    the transition out; `score` and `relative_gain` leave the playlist out and warn, because every
    model, uniform shuffle too, gives it the same -inf.

    Memory of `fit`: about 12 bytes for each pair of a distinct transition and an edge that holds both
    its songs.

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
        self.hypergraph = hypergraph
        self.weights = weights
        self.edge_probability = edge_probability
        self.prior = prior
        self.uniform_floor = uniform_floor
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.random_state = random_state

    @property
    def weights_(self) -> Float64Array:
        """The weights that were learned, else those given, scaled to sum 1."""
        fitted = self.__dict__.get("_fitted_weights")
        if fitted is not None:
            return fitted
        if self.weights is None:
            raise NotFittedError("This PlaylistModel has no weights yet; call fit, or give it weights.")
        weights = np.asarray(self.weights, dtype=np.float64)
        n_edges = self.hypergraph.n_edges
        if weights.shape != (n_edges,):
            raise ValueError(f"weights has shape {weights.shape}; the hypergraph has {n_edges} edges")
        if not np.all(np.isfinite(weights)) or np.any(weights < 0) or (n_edges and weights.sum() == 0):
            raise ValueError("weights must be finite and non-negative, and one of them positive")
        return weights / weights.sum()

    def _edge_factor(self) -> Float64Array:
        """Return c, with P[e | x] proportional to w_e c_e among the edges of x."""
        if self.edge_probability == "thesis":
            return np.ones(self.hypergraph.n_edges)
        if self.edge_probability == "bayes":
            return 1.0 / self.hypergraph.mass
        raise ValueError(f"edge_probability={self.edge_probability!r} must be 'thesis' or 'bayes'")

    def _pull(self) -> Float64Array:
        """Return w_e c_e."""
        return self.weights_ * self._edge_factor()

    def _prior_counts(self) -> Float64Array:
        try:
            prior = np.broadcast_to(np.asarray(self.prior, np.float64), (self.hypergraph.n_edges,))
        except ValueError:
            raise ValueError(
                f"prior has shape {np.shape(self.prior)}; give a number or one an edge ({self.hypergraph.n_edges})"
            ) from None
        if not np.all(np.isfinite(prior)) or np.any(prior < 1):
            raise ValueError("prior must be at least 1: below, the objective has no maximum on the simplex")
        return prior - 1.0

    def fit(
        self, playlists: Sequence[Sequence[int]], callback: Callable[[dict[str, Any]], bool | None] | None = None
    ) -> "PlaylistModel":
        """Learn the weights from playlists (lists of song rows) as their MAP estimate.

        `callback` gets a dict with ``iteration``, ``objective``, ``gain`` (over the last iteration) and
        ``weights``, once an iteration; if it returns True the fit stops there. Playlists of one
        song teach first songs only: the stationary model of section 7.7.2.
        """
        graph = self.hypergraph
        if not 0 <= self.uniform_floor < 1:
            raise ValueError(f"uniform_floor={self.uniform_floor} must lie in [0, 1)")
        check_whole("max_iter", self.max_iter, 1)
        if graph.n_edges == 0:
            raise ValueError("the hypergraph has no edges: a walk needs two songs or more")
        counts = Counts.of(playlists, graph.n_songs)
        if counts.first_songs.size == 0:
            raise ValueError("playlists hold no songs: there is nothing to learn from")
        likelihood, n_impossible = Likelihood.of(graph, counts, self._edge_factor(), self._prior_counts())
        outcome = maximise(
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
                f"max_iter={self.max_iter} iterations: the last still gained {last:.1e} an observation, "
                f"over tol={self.tol:.1e}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def log_probability(self, playlists: Sequence[Sequence[int]]) -> Float64Array:
        """Return log P[playlist] for each playlist, natural log, not divided by the length.

        -inf for an immediate repeat, and where no edge of positive weight explains a transition. 0 for
        an empty playlist.
        """
        return self._log_probability(Counts.of(playlists, self.hypergraph.n_songs), len(playlists))

    def _log_probability(self, counts: Counts, n_playlists: int) -> Float64Array:
        graph, pull = self.hypergraph, self._pull()
        starts = range(0, len(counts.pairs), _PAIRS_AT_ONCE)
        blocks = [pair_matrix(graph, counts.pairs[i : i + _PAIRS_AT_ONCE]) @ pull for i in starts]
        sources = counts.pairs[:, 0]
        out = graph.incidence @ pull
        # without edges (a collection of one song) its only song is certain
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
    def n_songs(self) -> int:
        """The songs of the hypergraph."""
        return self.hypergraph.n_songs

    def _check_song(self, song: int, argument: str) -> int:
        if not isinstance(song, int | np.integer) or not 0 <= song < self.hypergraph.n_songs:
            raise ValueError(f"{argument}={song!r} is no song; the hypergraph has {self.hypergraph.n_songs}, from 0")
        return int(song)

    def first_probabilities(self) -> Float64Array:
        """Return P[x0] for every song, shape (n_songs,)."""
        graph = self.hypergraph
        return graph.song_weight * (graph.incidence @ (self.weights_ / graph.mass))

    def edge_probabilities(self, song: int) -> tuple[IntpArray, Float64Array]:
        """Return the edges that hold `song`, ascending, and P[e | song]; zeros if all weigh 0."""
        return self._edge_probabilities(self._check_song(song, "song"), self._pull())

    def _edge_probabilities(self, song: int, pull: Float64Array) -> tuple[IntpArray, Float64Array]:
        edges = self.hypergraph.edges_of(song)
        total = pull[edges].sum()
        return edges, pull[edges] / (total if total > 0 else 1.0)

    def transition_probabilities(self, song: int) -> Float64Array:
        """Return P[y | song] for every song y, shape (n_songs,): sums to 1, and is 0 at `song` itself.

        All 0 where every edge of `song` weighs 0 (possible with fixed weights only).
        """
        graph = self.hypergraph
        edges, probabilities = self.edge_probabilities(song)
        share = np.zeros(graph.n_edges)
        share[edges] = probabilities / (graph.mass[edges] - graph.song_weight[song])
        row = graph.song_weight * (graph.incidence @ share)
        row[song] = 0.0
        return row

    def transition_edges(self, i: int, j: int) -> list[tuple[int, str, float]]:
        """Return the edges that can have led from song i to song j, most probable first.

        Each with its name and P[e | i, j], which sum to 1; equal ones by edge number. Empty when i is
        j, or no edge of positive weight holds both.
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

    def among(self, songs: npt.ArrayLike) -> "PlaylistModel":
        """The same walk among some of the songs, numbered from 0: edges keep their weights.

        Parameters
        ----------
        songs : int array of shape (n,), n >= 2, each once
            Edges that hold fewer than two of them are left out.
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
        """Return the most probable reason for song j to follow song i, whoever put it there.

        Its `probability` is P[e | i] as for generated steps. Where no edge explains the pair, the
        edge is -1, the name "" and the probability 0.
        """
        found = self.transition_edges(i, j)
        if not found:
            reason = "the same song again" if i == j else "nothing in common that the model knows of"
            return Transition(int(i), int(j), -1, "", 0.0, reason)
        edge, name, _ = found[0]
        edges, probabilities = self.edge_probabilities(i)
        probability = float(probabilities[np.searchsorted(edges, edge)])
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
        """Walk to a playlist of `length` songs, each step with the edge it took.

        Parameters
        ----------
        length : int >= 1, the songs in all, those of `prefix` and `fixed` among them
        first : int or None
            The opening song; None: drawn by P[x0].
        random_state : int, numpy Generator or None
            None: that of the model.
        prefix : sequence of int
            Songs already fixed, as they are: the walk goes on from the last of them.
        fixed : mapping of place (0 is the first) to song, or None
            Songs that stand where they are: an end to arrive at, waypoints, songs to keep. In between the walk is
            conditioned on passing through them.
        exclude : songs that are never drawn
        groups : sequence of shape (n_songs,) of labels such as artists, or None
            None, "" and nan as a label: the song collides with none.
        spacing : int >= 0
            No song is drawn whose group occurs among the `spacing` songs before it, or is fixed among
            as many behind it.
        works : sequence of shape (n_songs,) of labels, or None
            Songs of one label, such as the versions of one song, are never both in a playlist.
        weigh : array of shape (n_songs,), a callable from a place to such an array or None, or None
            How much each song is wanted: finite, not negative. A step counts in proportion.
        steer : callable from (place, song before, probabilities of the next song) to such an array or None
            What the song before adds to `weigh`; the probabilities, of shape (n_songs,), are those of the step without
            it, over the songs that may come. Not asked for the opening song.
        within : callable from a song to rows, or None
            The songs that the uniform edge leads to from a song, where songs are weighed; None: all.
        temperature : float > 0
            Edges are drawn in proportion to P[e | x] |e|^(1 - 1 / temperature): an edge's energy is the log of its
            size, the entropy of the step through it. Below 1 the walk keeps to tight edges, whose songs have more
            in common, above 1 it takes wide ones. The opening song is drawn as ever.
        repeat : bool
            True: a song may come again, though not at once.
        use_uniform : bool
            False: through the uniform edge only when no other edge has an allowed song, as the
            thesis generates its examples.

        Returns
        -------
        Playlist
            With a `note` of what could not be met: shorter than `length` when no allowed song is left, or songs of a
            group closer than `spacing` before a fixed one.

        Raises
        ------
        ValueError
            If an argument is out of range, or two of `first`, `prefix` and `fixed` contradict each other.

        Notes
        -----
        Restricted to the allowed songs, the walk draws an edge among those of the present song that
        still have one, in the model's proportions; then one of these songs. If none has, it draws any
        allowed song of the collection. Without restrictions, steps towards a fixed song are exactly those of the
        walk conditioned on it (and on `weigh` as likelihoods of the places). That songs drawn on the way are
        not drawn again is not in the messages, nor is `steer`, and spacing only towards fixed songs.

        Temperature is not a power of P[e | x]: the edges that weigh most are often the widest, and a walk that
        keeps to them goes from style to style.

        Memory: with `fixed` 12 bytes a membership and 8 bytes a song for each place of the longest gap.
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
        pull = self._heated(temperature)
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
            bridge=lambda: Bridge(graph, pull if use_uniform else self._without_uniform(pull)),
        )
        songs, steps, note = walker.walk(length)
        transitions = [
            step or self.explain(i, j) for (i, j), step in zip(itertools.pairwise(songs), steps[1:], strict=True)
        ]
        return Playlist(tuple(songs), tuple(transitions), steps[0] if steps else None, note)

    def _check_fixed(
        self, length: int, first: int | None, prefix: Sequence[int], fixed: Mapping[int, int]
    ) -> dict[int, int]:
        """Return the song at every fixed place; `first`, `prefix` and `fixed` must agree."""
        given = dict(enumerate(self._check_song(song, "prefix") for song in prefix))
        if len(given) > length:
            raise ValueError(f"prefix holds {len(given)} songs, more than length={length}")
        for argument, places in (("first", {} if first is None else {0: first}), ("fixed", fixed)):
            for place, song in places.items():
                if not 0 <= place < length:
                    raise ValueError(f"fixed names place {place}; a playlist of {length} has 0 to {length - 1}")
                if given.setdefault(int(place), self._check_song(song, argument)) != song:
                    raise ValueError(
                        f"{argument} puts song {song} at place {place}, where song {given[place]} is fixed already"
                    )
        return given

    def _check_weighing(self, weigh: "npt.ArrayLike | Weighing | None") -> Weighing:
        given = weigh if callable(weigh) else lambda place: weigh

        def checked(place: int) -> Float64Array | None:
            weights = given(place)
            if weights is None:
                return None
            weights = np.asarray(weights, dtype=np.float64)
            if weights.shape != (self.hypergraph.n_songs,):
                raise ValueError(f"weigh has shape {weights.shape}; it must be ({self.hypergraph.n_songs},)")
            if not np.all(np.isfinite(weights)) or np.any(weights < 0):
                raise ValueError("weigh must be finite and not negative")
            return weights

        return checked

    def _without_uniform(self, pull: Float64Array) -> Float64Array:
        """Leave the uniform edge so little that a path through it is taken only where there is no other."""
        uniform = self.hypergraph.uniform_edge
        if uniform is None:
            return pull
        left = pull.copy()
        left[uniform] = min(left[uniform], _LAST_RESORT * pull.sum())
        return left

    def family_shares(self) -> dict[str, float]:
        """Return the share of the weight of each kind of knowledge, the largest first (thesis, fig. 7.5).

        Kinds are those of `edge_families`. A conjunction counts for each of its parts' kinds, so that the
        shares may sum to more than 1.
        """
        shares: dict[str, float] = {}
        for kinds, weight in zip(edge_families(self.hypergraph.names), self.weights_.tolist(), strict=True):
            for kind in kinds:
                shares[kind] = shares.get(kind, 0.0) + weight
        return dict(sorted(shares.items(), key=lambda pair: -pair[1]))

    def step_width(self, temperature: float = 1.0, *, n_songs: int = 1000) -> float:
        """Return among how many songs a step chooses: the geometric mean of |e| - 1 over the edges that are taken.

        From at most `n_songs` songs, evenly spread and all alike. Memberships count, whatever songs weigh.
        """
        graph, pull = self.hypergraph, self._heated(temperature)
        rows = np.unique(np.linspace(0, graph.n_songs - 1, n_songs).astype(int))
        logs = []
        for song in rows.tolist():
            edges, p = self._edge_probabilities(song, pull)
            logs.append(float(p @ np.log(graph.sizes[edges] - 1)))
        return float(np.exp(np.mean(logs)))

    def _heated(self, temperature: float) -> Float64Array:
        """Return w_e c_e |e|^(1 - 1 / temperature), the mass of e for its size where songs have weights."""
        return self._pull() * (self.hypergraph.mass / self.hypergraph.mass.max(initial=1.0)) ** (1 - 1 / temperature)
