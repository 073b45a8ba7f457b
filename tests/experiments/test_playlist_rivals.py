"""The rival playlist models against hand-worked formulae, finite differences, and each other."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from experiments.support.markov_embedding import Points, TransitionTable, block_gradient, log_moves
from experiments.support.playlist_rivals import (
    BigramModel,
    LatentMarkovEmbedding,
    Popularity,
    StationaryModel,
    UniformShuffle,
)
from musicsim.playlist import PlaylistModel, build_edges
from musicsim.playlist.counts import Counts
from tests.playlist.graphs import YES_SMALL, random_graph, random_playlists, read_yes

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CHAINS = {
    "uniform": UniformShuffle,
    "popularity": Popularity,
    "bigram": BigramModel,
    "bigram, one discount": lambda n: BigramModel(n, discount=0.8),
    "bigram on popularity": lambda n: BigramModel(n, back_off="popularity"),
    "bigram on uniform": lambda n: BigramModel(n, back_off="uniform"),
    "embedding": lambda n: LatentMarkovEmbedding(n, 3, max_iter=3, random_state=0),
    "embedding without bias": lambda n: LatentMarkovEmbedding(n, 2, popularity=False, max_iter=3, random_state=0),
}
chains = pytest.mark.parametrize("name", CHAINS)


# --- what all chains share -----------------------------------------------------------------------


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), n_songs=st.integers(2, 12), name=st.sampled_from(list(CHAINS)))
def test_probabilities_sum_to_one_from_every_song(seed, n_songs, name):
    rng = np.random.default_rng(seed)
    playlists = [[0, 1], *random_playlists(rng, n_songs, int(rng.integers(1, 30)))]
    model = CHAINS[name](n_songs).fit(playlists)
    rows = np.array([model.transition_probabilities(song) for song in range(n_songs)])
    # sums of at most 12 float64 terms, each the exp of a log
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.first_probabilities().sum(), 1.0, rtol=1e-12)
    assert np.all(np.diag(rows) == 0)
    assert np.all(rows + np.eye(n_songs) > 0)


@chains
def test_playlist_probability_is_first_song_times_transitions(name):
    rng = np.random.default_rng(1)
    model = CHAINS[name](8).fit(random_playlists(rng, 8, 40))
    playlists = random_playlists(rng, 8, 25)
    first = np.log(model.first_probabilities())
    moves = np.log([model.transition_probabilities(song) + np.eye(8)[song] for song in range(8)])
    walks = np.array([sum(moves[x, y] for x, y in itertools.pairwise(playlist)) for playlist in playlists])
    starts = np.array([first[playlist[0]] for playlist in playlists])
    np.testing.assert_allclose(model.log_probability(playlists), starts + walks, rtol=1e-10)
    np.testing.assert_allclose(model.transition_log_probability(playlists), walks, rtol=1e-10)
    n_moves = sum(len(playlist) - 1 for playlist in playlists)
    assert model.mean_transition_log_probability(playlists) == pytest.approx(walks.sum() / n_moves)
    lengths = [len(playlist) for playlist in playlists]
    assert model.score(playlists) == pytest.approx(np.mean((starts + walks) / lengths))
    uniform = UniformShuffle(8).score(playlists)
    assert model.relative_gain(playlists) == pytest.approx(1 - model.score(playlists) / uniform, abs=1e-12)


@chains
def test_immediate_repeats_are_impossible_and_skipped(name):
    train = [[0, 1, 2], [2, 3, 1], [1, 0]] * 5
    model = CHAINS[name](4).fit(train)
    log_p = model.log_probability([[3, 3], [1, 2, 2], [1, 2, 1], []])
    assert np.isneginf(log_p).tolist() == [True, True, False, False]
    assert log_p[3] == 0.0
    assert np.isneginf(model.transition_log_probability([[3, 3]])[0])
    with pytest.warns(UserWarning, match="2 of 3 playlists are skipped") as caught:
        value = model.mean_transition_log_probability([[0, 1, 2], [2, 2, 1], []])
    assert caught[0].filename == __file__
    assert value == pytest.approx(model.mean_transition_log_probability([[0, 1, 2]]))
    with pytest.warns(UserWarning, match="1 of 2 playlists are skipped") as caught:
        model.score([[0, 1, 2], [2, 2, 1]])
    assert caught[0].filename == __file__
    # a repeat in training teaches nothing, not even a play
    again = CHAINS[name](4).fit([[0, 0, 1, 2, 2], *train[1:]])
    np.testing.assert_allclose(again.transition_probabilities(0), model.transition_probabilities(0))


def test_hypergraph_walk_is_measured_the_same_way():
    rng = np.random.default_rng(3)
    graph = random_graph(rng)
    model = PlaylistModel(graph, rng.random(graph.n_edges))
    playlists = random_playlists(rng, graph.n_songs, 10)
    walks = model.log_probability(playlists) - model.log_probability([p[:1] for p in playlists])
    np.testing.assert_allclose(model.transition_log_probability(playlists), walks, atol=1e-12)
    n_moves = sum(len(playlist) - 1 for playlist in playlists)
    assert model.mean_transition_log_probability(playlists) == pytest.approx(walks.sum() / n_moves)


def test_mean_is_undefined_without_transitions():
    model = UniformShuffle(4)
    assert model.transition_log_probability([[1], []]).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="every playlist has only one song"):
        model.mean_transition_log_probability([[1], [2]])
    with pytest.raises(ValueError, match="no playlist can be evaluated"):
        model.mean_transition_log_probability([[1, 1]])


def test_single_song_has_probability_one():
    for name in ("uniform", "popularity", "bigram"):
        model = CHAINS[name](1).fit([[0]])
        assert model.log_probability([[0]]).tolist() == [0.0]
        assert model.transition_probabilities(0).tolist() == [0.0]


# --- uniform and popularity ----------------------------------------------------------------------


def test_uniform_shuffle_matches_single_edge_model():
    playlists = random_playlists(np.random.default_rng(0), 7, 20)
    edge = PlaylistModel(build_edges(7), [1.0])
    np.testing.assert_allclose(UniformShuffle(7).log_probability(playlists), edge.log_probability(playlists))
    assert UniformShuffle(7).mean_transition_log_probability(playlists) == pytest.approx(-np.log(6))


def test_popularity_is_share_of_plays():
    model = Popularity(4, pseudo_count=0.5).fit([[0, 1, 0], [1, 2]])
    p = np.array([2.5, 2.5, 1.5, 0.5]) / 7
    np.testing.assert_allclose(model.first_probabilities(), p)
    np.testing.assert_allclose(model.transition_probabilities(2), [2.5 / 5.5, 2.5 / 5.5, 0, 0.5 / 5.5])
    assert model.log_probability([[3, 0, 2]])[0] == pytest.approx(
        np.log(p[3]) + np.log(p[0] / (1 - p[3])) + np.log(p[2] / (1 - p[0]))
    )


# --- bigram --------------------------------------------------------------------------------------


def bigram_by_hand(playlists, n_songs, discounts, back_off, pseudo_count):
    """P[y | x] of every pair, by loops over a dictionary of counts."""
    seen = Counter(move for playlist in playlists for move in itertools.pairwise(playlist))
    before, plays = defaultdict(set), Counter(song for playlist in playlists for song in playlist)
    for x, y in seen:
        before[y].add(x)
    strength = {"kneser-ney": lambda y: len(before[y]), "popularity": plays.__getitem__,
                "uniform": lambda y: 0}[back_off]  # fmt: skip
    q = {y: strength(y) + pseudo_count for y in range(n_songs)}
    table = np.zeros((n_songs, n_songs))
    for x in range(n_songs):
        left = {y: seen[x, y] for y in range(n_songs) if seen[x, y]}
        total = sum(left.values())
        freed = sum(discounts[min(c, 3) - 1] for c in left.values()) / total if total else 1.0
        for y in set(range(n_songs)) - {x}:
            kept = (left[y] - discounts[min(left[y], 3) - 1]) / total if y in left else 0.0
            table[x, y] = kept + freed * q[y] / sum(q[z] for z in q if z != x)
    return table


@pytest.mark.parametrize("back_off", ["kneser-ney", "popularity", "uniform"])
@pytest.mark.parametrize("discount", [0.4, 1.0, None])
def test_bigrams_match_formula(back_off, discount):
    rng = np.random.default_rng(4)
    playlists = [playlist for playlist in random_playlists(rng, 6, 8)[1:] if 5 not in playlist[:-1]]
    model = BigramModel(6, discount, back_off, pseudo_count=0.3).fit(playlists)
    expected = bigram_by_hand(playlists, 6, model.discounts_, back_off, 0.3)
    rows = [model.transition_probabilities(song) for song in range(6)]
    np.testing.assert_allclose(rows, expected, rtol=1e-12)
    openings = np.bincount([playlist[0] for playlist in playlists], minlength=6) + 0.3
    np.testing.assert_allclose(model.first_probabilities(), openings / openings.sum())


def test_discounts_match_chen_and_goodman():
    # 8 transitions seen once, 4 twice, 2 three times, 1 four times: Y = 8 / (8 + 8) = 1/2
    times = [1] * 8 + [2] * 4 + [3] * 2 + [4]
    moves = list(itertools.permutations(range(5), 2))
    playlists = [list(move) for move, t in zip(moves, times, strict=False) for _ in range(t)]
    # 1 - 2 Y 4/8, 2 - 3 Y 2/4, 3 - 4 Y 1/2
    np.testing.assert_allclose(BigramModel(5).fit(playlists).discounts_, [0.5, 1.25, 2.0])
    assert BigramModel(5).fit([[0, 1]]).discounts_.tolist() == [0.5, 1.0, 1.5]
    assert BigramModel(5, 0.7).fit(playlists).discounts_.tolist() == [0.7] * 3


# --- embedding -----------------------------------------------------------------------------------


def random_points(rng, n_songs=7, n_dimensions=3):
    return Points(rng.normal(size=(n_songs, n_dimensions)), rng.normal(size=n_songs))


def test_embedding_transitions_match_formula():
    rng = np.random.default_rng(5)
    points = random_points(rng, 300, 2)  # more sources than one block
    pairs = np.array([(x, y) for x in range(300) for y in rng.permutation(300)[:4] if x != y])
    own = []
    for x, y in pairs:
        weight = np.exp(points.bias - np.sum((points.coordinates - points.coordinates[x]) ** 2, axis=1))
        own.append(np.log(weight[y] / (weight.sum() - weight[x])))
    np.testing.assert_allclose(log_moves(points, pairs), own, rtol=1e-9)


@pytest.mark.parametrize("songs", [[0, 1, 2, 3, 4, 5, 6], [1, 4], [6]])
def test_gradient_matches_finite_differences(songs):
    rng = np.random.default_rng(6)
    points, songs = random_points(rng), np.array(songs)
    counts = Counts.from_playlists(random_playlists(rng, 7, 30), 7)
    table = TransitionTable.of(counts, 7)
    here = np.isin(counts.pairs[:, 0], songs)

    def objective(points):
        return (table.count * log_moves(points, counts.pairs))[here].sum()

    gradient = block_gradient(points, table, songs)
    held = ((points.coordinates, gradient.coordinates), (points.bias, gradient.bias))
    for values, by_formula in held:
        for at in np.ndindex(values.shape):
            kept, sides = values[at], []
            for step in (1e-5, -1e-5):
                values[at] = kept + step
                sides.append(objective(points))
            values[at] = kept
            # a sum of 70 logs, some 200 nats: rounding of 3e-14 over 2e-5; the third derivative adds 1e-9
            assert by_formula[at] == pytest.approx((sides[0] - sides[1]) / 2e-5, abs=1e-6)


def ring_walks(rng, n_songs, count, length=5):
    """Walks round a ring of songs, 1 to 3 places at a time to either side."""
    step = rng.integers(1, 4, (count, length)) * rng.choice([-1, 1], (count, length))
    walks = np.cumsum(step, axis=1) + rng.integers(n_songs, size=(count, 1))
    return (walks % n_songs).tolist()


def test_embedding_recovers_ring_from_few_playlists():
    rng = np.random.default_rng(7)
    train, test = ring_walks(rng, 60, 150), ring_walks(rng, 60, 500)
    model = LatentMarkovEmbedding(60, 4, 0.1, learning_rate=0.03, batch_size=16, random_state=0).fit(train)
    found = model.mean_transition_log_probability(test)
    # The truth is -log 6 = -1.79, uniform -4.08; 600 transitions for 360 distinct ones starve the bigram.
    # Three draws of the data with two seeds each: 0.7 to 0.8 ahead, 0.89 to 0.98 of the six likeliest right.
    assert found > BigramModel(60).fit(train).mean_transition_log_probability(test) + 0.6
    assert found < -np.log(6)
    songs = np.arange(60)
    likeliest = [np.argsort(-model.transition_probabilities(song))[:6] for song in songs]
    apart = np.abs(np.array(likeliest) - songs[:, None])
    assert np.mean(np.minimum(apart, 60 - apart) <= 3) > 0.85


def test_keeps_best_points_on_held_out_playlists():
    rng = np.random.default_rng(8)
    playlists = ring_walks(rng, 30, 100)
    steps = []
    model = LatentMarkovEmbedding(30, 4, 0.0, learning_rate=0.1, batch_size=8, random_state=3)
    model.fit(playlists, callback=steps.append)
    assert model.converged_
    assert [step["objective"] for step in steps] == model.history_
    assert steps[-1]["best"] == max(model.history_)
    assert model.n_iter_ == np.argmax(model.history_) + 1 + model.n_iter_no_change
    held_out = np.random.default_rng(3).permutation(100)[:10]
    kept = model.mean_transition_log_probability([playlists[i] for i in held_out])
    assert kept == pytest.approx(max(model.history_))
    # only the choice of the best pass depends on held-out playlists
    once = [LatentMarkovEmbedding(30, 4, max_iter=1, random_state=3).fit(playlists)]
    for i in held_out:
        playlists[i] = [0, 15]
    once.append(LatentMarkovEmbedding(30, 4, max_iter=1, random_state=3).fit(playlists))
    np.testing.assert_array_equal(once[0].coordinates_, once[1].coordinates_)
    assert once[0].history_ != once[1].history_


def test_callback_stops_embedding_and_limit_warns():
    playlists = ring_walks(np.random.default_rng(9), 30, 100)
    model = LatentMarkovEmbedding(30, random_state=0)
    model.fit(playlists, callback=lambda step: step["iteration"] == 2)
    assert (model.n_iter_, model.converged_) == (2, False)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 passes"):
        LatentMarkovEmbedding(30, max_iter=1, random_state=0).fit(playlists)


def test_regularization_pulls_points_together():
    playlists = ring_walks(np.random.default_rng(10), 30, 200)
    spread = [
        np.square(LatentMarkovEmbedding(30, 2, strength, random_state=0).fit(playlists).coordinates_).sum()
        for strength in (0.0, 3.0, 1e4)
    ]
    assert spread[0] > spread[1] > spread[2]
    assert spread[2] < 0.05


def test_same_seed_gives_same_embedding():
    playlists = ring_walks(np.random.default_rng(11), 20, 50)
    fits = [LatentMarkovEmbedding(20, 2, max_iter=4, random_state=s).fit(playlists) for s in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0].coordinates_, fits[1].coordinates_)
    assert not np.array_equal(fits[0].coordinates_, fits[2].coordinates_)


# --- stationary ----------------------------------------------------------------------------------


def test_stationary_model_ignores_previous_song():
    graph = build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]], uniform=False)
    model = StationaryModel(graph, tol=1e-12).fit([[0, 1, 0], [2]])
    # 3 of 4 songs in a, halved between its songs
    np.testing.assert_allclose(model.weights_, [0.75, 0.25], rtol=1e-9)
    p = [0.375, 0.375, 0.125, 0.125]
    np.testing.assert_allclose(model.first_probabilities(), p, rtol=1e-9)
    np.testing.assert_allclose(model.transition_probabilities(3), p, rtol=1e-9)
    log_p = model.log_probability([[0, 3, 3], [2], []])
    np.testing.assert_allclose(log_p, [np.log(0.375 * 0.125**2), np.log(0.125), 0.0])
    np.testing.assert_allclose(model.transition_log_probability([[0, 3, 3]]), np.log(0.125**2))
    assert model.score([[0, 2, 1]]) == pytest.approx(model.log_probability([[0, 2, 1]])[0] / 3)
    assert model.mean_transition_log_probability([[0, 2, 1]]) == pytest.approx(np.log(0.125 * 0.375) / 2)


# --- parameters and bad input --------------------------------------------------------------------


@chains
def test_clones_share_parameters_but_not_fit(name):
    model = CHAINS[name](5).fit([[0, 1, 2], [3, 4]] * 3)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    if name != "uniform":
        with pytest.raises(NotFittedError):
            twin.log_probability([[0, 1]])
        with pytest.raises(NotFittedError):
            twin.first_probabilities()


def test_unfitted_stationary_model_is_rejected():
    with pytest.raises(NotFittedError):
        StationaryModel(build_edges(3)).score([[0, 1]])


@pytest.mark.parametrize("name", [*CHAINS, "stationary"])
@pytest.mark.parametrize(
    ("playlists", "message"),
    [
        ([[0, 1], [2, 4]], r"playlists\[1\] has song 4"),
        ([[0, 1], [-1, 0]], r"playlists\[1\] has song -1"),
        ([[0.5, 1]], "must be a list of song rows"),
        ([], "nothing to learn from"),
        ([[], []], "nothing to learn from"),
    ],
)
def test_rejects_bad_playlists(name, playlists, message):
    model = StationaryModel(build_edges(4)) if name == "stationary" else CHAINS[name](4)
    with pytest.raises(ValueError, match=message):
        model.fit(playlists)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (UniformShuffle(0), "n_songs=0 must be"),
        (Popularity(2.5), "n_songs=2.5 must be"),
        (Popularity(3, 0.0), "pseudo_count=0.0 must be above 0"),
        (BigramModel(3, 0.0), "discount=0.0 must lie"),
        (BigramModel(3, 1.5), "discount=1.5 must lie"),
        (BigramModel(3, back_off="katz"), "back_off='katz' must be"),
        (LatentMarkovEmbedding(3, 0), "n_dimensions=0"),
        (LatentMarkovEmbedding(3, 2, -1.0), "regularization=-1.0"),
        (LatentMarkovEmbedding(3, learning_rate=0), "learning_rate=0"),
        (LatentMarkovEmbedding(3, validation_fraction=1.0), "validation_fraction=1.0"),
        (LatentMarkovEmbedding(3, max_iter=0), "max_iter=0"),
    ],
)
def test_fit_rejects_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0, 1]])


def test_embedding_requires_transitions():
    with pytest.raises(ValueError, match="playlists hold no transitions"):
        LatentMarkovEmbedding(3).fit([[0], [1], [2, 2]])
    # all transitions in the only playlist held out: they are trained on
    playlists = [[0], [1], [0, 1, 2], [2]]
    for seed in range(6):
        model = LatentMarkovEmbedding(3, 2, max_iter=2, validation_fraction=0.25, random_state=seed)
        assert np.isfinite(model.fit(playlists).history_).all()


@pytest.mark.parametrize("song", [3, -1, 0.5])
def test_transitions_reject_unknown_song(song):
    with pytest.raises(ValueError, match="is no song; the model has 3"):
        UniformShuffle(3).transition_probabilities(song)


# --- public data ---------------------------------------------------------------------------------


@pytest.mark.skipif(not YES_SMALL.is_dir(), reason="no yes.com playlists: set MUSICSIM_SHARED_DATA")
def test_rivals_reach_documented_scores_on_radio_playlists():
    playlists, tags = read_yes(YES_SMALL)
    order = np.random.default_rng(0).permutation(len(playlists))
    cut = int(0.8 * len(playlists))
    train, test = ([playlists[i] for i in part] for part in (order[:cut], order[cut:]))
    n = len(tags)
    models = [Popularity(n), BigramModel(n), LatentMarkovEmbedding(n, random_state=0)]
    found = [model.fit(train).mean_transition_log_probability(test) for model in models]
    # counts are exact to the digits written; the embedding differs by 0.01 from seed to seed
    assert found[:2] == pytest.approx([-7.630, -7.125], abs=6e-4)
    assert found[2] == pytest.approx(-5.86, abs=0.03)
