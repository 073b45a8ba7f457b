"""Tests of the playlist model against its definition, an independent optimizer, and its own samples."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from musicsim.playlist import PlaylistModel, build_edges
from tests.playlist.graphs import YES_SMALL, random_graph, random_playlists, read_yes

EDGE_PROBABILITIES = ["thesis", "bayes"]


class Definition:
    """P[x0] and P[y | x] by loops over songs and edges, from the equations of section 7.5.2."""

    def __init__(self, graph, weights, edge_probability):
        self.edges = [set(np.flatnonzero(column)) for column in graph.incidence.toarray().T]
        self.p = graph.song_weight
        self.w = np.asarray(weights)
        self.kind = edge_probability

    def mass(self, edge, without=None):
        return sum(self.p[song] for song in edge if song != without)

    def first(self, x):
        inside = (w * self.p[x] / self.mass(edge) for w, edge in zip(self.w, self.edges, strict=True) if x in edge)
        return sum(inside) / self.w.sum()

    def edge_weight(self, w, edge):
        return w if self.kind == "thesis" else w / self.mass(edge)

    def move(self, x, y):
        if x == y:
            return 0.0
        of_x = [(self.edge_weight(w, edge), edge) for w, edge in zip(self.w, self.edges, strict=True) if x in edge]
        total = sum(weight for weight, _ in of_x)
        return sum(weight / total * self.p[y] / self.mass(edge, x) for weight, edge in of_x if y in edge)

    def log_probability(self, playlist):
        moves = (np.log(self.move(x, y)) for x, y in itertools.pairwise(playlist))
        return np.log(self.first(playlist[0])) + sum(moves)


# --- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize("edge_probability", EDGE_PROBABILITIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_probabilities_equal_the_definition(edge_probability, weighted, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, weighted=weighted)
    model = PlaylistModel(graph, rng.random(graph.n_edges), edge_probability=edge_probability)
    truth = Definition(graph, model.weights, edge_probability)
    songs = range(graph.n_songs)
    # sums of at most 10 float64 products: 1e-12 allows for their order
    np.testing.assert_allclose(model.first_probabilities(), [truth.first(x) for x in songs], rtol=1e-12)
    for x in songs:
        row = [truth.move(x, y) for y in songs]
        np.testing.assert_allclose(model.transition_probabilities(x), row, rtol=1e-12)
    playlists = random_playlists(rng, graph.n_songs, 20)
    expected = [truth.log_probability(playlist) for playlist in playlists]
    np.testing.assert_allclose(model.log_probability(playlists), expected, rtol=1e-12)


@pytest.mark.parametrize("edge_probability", EDGE_PROBABILITIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_among_some_songs_edges_keep_their_weights(edge_probability, weighted):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, weighted=weighted)
    model = PlaylistModel(graph, rng.random(graph.n_edges), edge_probability=edge_probability)
    songs = [1, 4, 5, 8]
    truth = Definition(graph, model.weights, edge_probability)
    place = {song: i for i, song in enumerate(songs)}
    edges = [{place[x] for x in edge if x in place} for edge in truth.edges]
    kept = [e for e, edge in enumerate(edges) if len(edge) > 1]
    truth.edges, truth.w, truth.p = [edges[e] for e in kept], truth.w[kept], graph.song_weight[songs]
    part = model.restrict(songs)
    assert part.hypergraph.names == [graph.names[e] for e in kept]
    for x in range(4):
        row = [truth.move(x, y) for y in range(4)]
        np.testing.assert_allclose(part.transition_probabilities(x), row, rtol=1e-12)


@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_songs=st.integers(2, 12),
    edge_probability=st.sampled_from(EDGE_PROBABILITIES),
    weighted=st.booleans(),
    scale=st.floats(1e-6, 1e6),
)
def test_rows_sum_to_one_and_the_scale_of_the_weights_is_ignored(seed, n_songs, edge_probability, weighted, scale):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_songs, weighted=weighted)
    weights = rng.random(graph.n_edges)
    model = PlaylistModel(graph, weights, edge_probability=edge_probability)
    rows = np.array([model.transition_probabilities(x) for x in range(n_songs)])
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(model.first_probabilities().sum(), 1.0, rtol=1e-12)
    assert np.all(np.diag(rows) == 0)
    scaled = PlaylistModel(graph, weights * scale, edge_probability=edge_probability)
    playlists = random_playlists(rng, n_songs, 5)
    np.testing.assert_allclose(scaled.log_probability(playlists), model.log_probability(playlists), rtol=1e-9)


def test_an_immediate_repeat_is_impossible():
    graph = random_graph(np.random.default_rng(0))
    log_p = PlaylistModel(graph, np.ones(graph.n_edges)).log_probability([[3, 3], [1, 2, 2], [1, 2, 1], []])
    assert np.isneginf(log_p).tolist() == [True, True, False, False]
    assert log_p[3] == 0.0


def test_songs_without_a_common_edge_follow_each_other_through_the_uniform_edge_only():
    tags = [["a"], ["a"], ["b"], ["b"]]
    graph = build_edges(4, tags=tags)
    model = PlaylistModel(graph, [1, 1, 2])
    # 1/3 to tag a, 2/3 to the uniform edge with 3 other songs
    assert model.log_probability([[0, 2]])[0] - model.log_probability([[0]])[0] == pytest.approx(np.log(2 / 9))
    bare = PlaylistModel(build_edges(4, tags=tags, uniform=False), [1, 1])
    assert np.isneginf(bare.log_probability([[0, 2]])[0])


def test_a_song_whose_edges_all_weigh_nothing_leads_nowhere():
    model = PlaylistModel(build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]]), [0, 1, 0])
    assert model.transition_probabilities(0).tolist() == [0, 0, 0, 0]
    assert np.isneginf(model.log_probability([[2, 0, 1]])[0])
    assert model.generate(2, first=0, random_state=0).transitions[0].probability == 0.0


def test_score_and_gain_are_those_of_the_thesis():
    rng = np.random.default_rng(1)
    graph = random_graph(rng)
    model = PlaylistModel(graph, rng.random(graph.n_edges))
    playlists = random_playlists(rng, graph.n_songs, 12)
    lengths = np.array([len(playlist) for playlist in playlists])
    score = np.mean(model.log_probability(playlists) / lengths)
    assert model.score(playlists) == pytest.approx(score)
    only_uniform = PlaylistModel(graph, np.arange(graph.n_edges) == graph.uniform_edge)
    baseline = np.mean(only_uniform.log_probability(playlists) / lengths)
    assert model.relative_gain(playlists) == pytest.approx(1 - score / baseline)
    assert only_uniform.relative_gain(playlists) == pytest.approx(0.0, abs=1e-12)


def test_playlists_with_immediate_repeats_are_left_out_of_the_score():
    graph = random_graph(np.random.default_rng(0))
    model = PlaylistModel(graph, np.ones(graph.n_edges))
    with pytest.warns(UserWarning, match="2 of 3 playlists are skipped"):
        score = model.score([[0, 1], [2, 2], []])
    assert score == pytest.approx(model.score([[0, 1]]))
    with pytest.raises(ValueError, match="no playlist can be evaluated"):
        model.relative_gain([[2, 2]])


# --- fitting -------------------------------------------------------------------------------------


def objective(graph, playlists, weights, edge_probability, prior):
    """Return the MAP objective by the loops of `Definition`."""
    truth = Definition(graph, weights, edge_probability)
    return sum(truth.log_probability(p) for p in playlists) + np.sum((prior - 1) * np.log(weights))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # tol=0 runs to the limit
@pytest.mark.parametrize("edge_probability", EDGE_PROBABILITIES)
@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("floor", [0.0, 1e-3, 0.4])
def test_no_iteration_lowers_the_objective(edge_probability, accelerate, floor):
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 30, 15, weighted=True)
    model = PlaylistModel(
        graph, edge_probability=edge_probability, prior=1.2, uniform_floor=floor, accelerate=accelerate,
        max_iter=300, tol=0,
    )  # fmt: skip
    steps = []
    playlists = random_playlists(rng, 30, 60)
    model.fit(playlists, callback=steps.append)
    history = np.array(model.history_)
    # rounding of a sum of some 200 logs of size 3
    assert np.all(np.diff(history) >= -1e-10 * abs(history[0]))
    assert history[-1] > history[0] + 1
    assert [step["objective"] for step in steps] == model.history_[1:]
    for step in steps[::40]:
        expected = objective(graph, playlists, step["weights"], edge_probability, 1.2)
        assert step["objective"] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("edge_probability", EDGE_PROBABILITIES)
@pytest.mark.parametrize(("prior", "floor"), [(1.0, 0.0), (1.5, 0.0), (1.0, 0.3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_as_good_as_lbfgs_on_a_softmax(edge_probability, prior, floor, weighted):
    rng = np.random.default_rng(11)
    graph = random_graph(rng, 12, 7, weighted=weighted)
    playlists = random_playlists(rng, 12, 25)
    model = PlaylistModel(
        graph, edge_probability=edge_probability, prior=prior, uniform_floor=floor, tol=1e-12, max_iter=3000
    ).fit(playlists)

    def weights(z):
        soft = np.exp(z - z.max())
        share = soft / soft.sum()
        return floor * (np.arange(z.size) == graph.uniform_edge) + (1 - floor) * share

    def loss(z):
        fixed = PlaylistModel(graph, weights(z), edge_probability=edge_probability)
        return -fixed.log_probability(playlists).sum() - (prior - 1) * np.log(weights(z)).sum()

    starts = [np.zeros(graph.n_edges), *rng.normal(size=(2, graph.n_edges))]
    rival = -min(optimize.minimize(loss, z, method="L-BFGS-B", options={"maxfun": 20_000}).fun for z in starts)
    assert model.objective_ == pytest.approx(-loss(np.log(np.maximum(unfloored(model, floor), 1e-200))), rel=1e-9)
    # the objective is about -200 nats; L-BFGS with numerical gradients stops about 1e-5 short of the optimum
    assert model.objective_ >= rival - 1e-4
    assert model.objective_ <= rival + 1e-2


def unfloored(model, floor):
    """Return the softmax shares that `weights` above maps to the model's weights."""
    uniform = np.arange(model.weights_.size) == model.hypergraph.uniform_edge
    return np.maximum(model.weights_ - floor * uniform, 0) / (1 - floor)


def test_the_floor_holds_when_the_playlists_never_shuffle():
    graph = build_edges(6, tags=[["a"]] * 3 + [["b"]] * 3)
    playlists = [[0, 1, 2], [1, 2, 0], [3, 4], [5, 3, 4]] * 5
    free = PlaylistModel(graph, uniform_floor=0.0).fit(playlists)
    assert free.weights_[graph.uniform_edge] < 1e-6
    for floor in (1e-3, 0.2):
        model = PlaylistModel(graph, uniform_floor=floor).fit(playlists)
        assert model.weights_[graph.uniform_edge] == pytest.approx(floor, rel=1e-12)
        assert model.weights_.sum() == pytest.approx(1.0)
        assert np.isfinite(model.log_probability([[0, 5, 1, 4]])[0])


def test_hidden_weights_are_found_again():
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 40, 6)
    hidden = rng.dirichlet(np.full(graph.n_edges, 2.0))
    teacher = PlaylistModel(graph, hidden)
    playlists = [teacher.generate(10, random_state=rng, repeat=True).songs for _ in range(1500)]
    learned = PlaylistModel(graph).fit(playlists)
    # 15,000 observations of 7 edges: a standard error of about 0.01 per weight, because edges overlap
    np.testing.assert_allclose(learned.weights_, hidden, atol=0.04)
    assert learned.score(playlists) >= teacher.score(playlists)


def test_a_strong_prior_pulls_towards_equal_weights_and_may_differ_by_edge():
    rng = np.random.default_rng(2)
    graph = random_graph(rng)
    playlists = random_playlists(rng, graph.n_songs, 10)
    even = PlaylistModel(graph, prior=1e6).fit(playlists).weights_
    np.testing.assert_allclose(even, 1 / graph.n_edges, rtol=1e-3)  # 50 observations against 1e6
    strength = np.ones(graph.n_edges)
    strength[2] = 1e6
    assert PlaylistModel(graph, prior=strength).fit(playlists).weights_[2] > 0.99


def test_repeats_and_unexplained_transitions_are_left_out_of_the_fit():
    graph = build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]], uniform=False)
    with_them = PlaylistModel(graph).fit([[0, 0, 1], [2, 3, 3, 0]])
    assert with_them.n_skipped_ == 3  # 0-0, 3-3, and 3-0 without a common edge
    apart = PlaylistModel(graph).fit([[0, 1], [2, 3]])
    assert apart.n_skipped_ == 0
    np.testing.assert_allclose(with_them.weights_, apart.weights_)


def test_single_songs_teach_the_stationary_model():
    # Shares of disjoint edges among first songs: 3 of 4 in a.
    graph = build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]], uniform=False)
    model = PlaylistModel(graph, tol=1e-12).fit([[0], [1], [0], [2], []])
    np.testing.assert_allclose(model.weights_, [0.75, 0.25], rtol=1e-9)


def test_equal_playlists_count_as_often_as_they_come():
    rng = np.random.default_rng(4)
    graph = random_graph(rng)
    playlists = random_playlists(rng, graph.n_songs, 8)
    once = PlaylistModel(graph, tol=1e-13, max_iter=5000).fit(playlists)
    thrice = PlaylistModel(graph, tol=1e-13, max_iter=5000).fit(playlists * 3)
    assert thrice.objective_ == pytest.approx(3 * once.objective_, rel=1e-9)


def test_the_callback_stops_the_fit_and_the_limit_warns():
    rng = np.random.default_rng(6)
    graph = random_graph(rng, 30, 15)
    playlists = random_playlists(rng, 30, 60)
    model = PlaylistModel(graph, tol=0).fit(playlists, callback=lambda step: step["iteration"] == 2)
    assert (model.n_iter_, model.converged_) == (2, False)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations, but the last one still gained"):
        PlaylistModel(graph, max_iter=1).fit(playlists)
    assert PlaylistModel(graph).fit(playlists).converged_


# --- generating ----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("edge_probability", EDGE_PROBABILITIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_generated_songs_follow_the_probabilities(edge_probability, weighted):
    rng = np.random.default_rng(8)
    graph = random_graph(rng, 7, 4, weighted=weighted)
    model = PlaylistModel(graph, rng.random(graph.n_edges), edge_probability=edge_probability)
    draws = 4000
    first, after = np.zeros(7), np.zeros(7)
    for _ in range(draws):
        playlist = model.generate(1, random_state=rng)
        first[playlist.songs[0]] += 1
        after[model.generate(2, first=3, random_state=rng).songs[1]] += 1
    # Total variation between 4,000 draws of 7 songs and their distribution: about 0.016; 0.04 never occurred
    assert np.abs(first / draws - model.first_probabilities()).sum() / 2 < 0.04
    assert np.abs(after / draws - model.transition_probabilities(3)).sum() / 2 < 0.04


def test_edges_of_generated_steps_follow_their_posterior():
    rng = np.random.default_rng(9)
    graph = random_graph(rng, 6, 3)
    model = PlaylistModel(graph, rng.random(graph.n_edges))
    steps = [model.generate(2, first=0, random_state=rng).transitions[0] for _ in range(4000)]
    target = max(range(1, 6), key=lambda y: model.transition_probabilities(0)[y])
    taken = np.bincount([s.edge for s in steps if s.song == target], minlength=graph.n_edges)
    for edge, _, probability in model.transition_edges(0, target):
        # standard error below 0.02 with 600 draws or more
        assert taken[edge] / taken.sum() == pytest.approx(probability, abs=0.06)


def test_restricted_steps_keep_the_proportions_of_the_edges():
    # From song 0: tag a (song 1, excluded), tag b (songs 2, 3), uniform. Only b and uniform remain, 3 : 1.
    graph = build_edges(6, tags=[["a", "b"], ["a"], ["b"], ["b"], [], []])
    weights = {"tag:a": 5.0, "tag:b": 3.0, "uniform:all": 1.0}
    model = PlaylistModel(graph, [weights[name] for name in graph.names])
    rng = np.random.default_rng(0)
    steps = [model.generate(2, first=0, random_state=rng, exclude=[1]).transitions[0] for _ in range(3000)]
    share = np.mean([step.name == "tag:b" for step in steps])
    assert share == pytest.approx(0.75, abs=0.03)  # standard error 0.008
    assert {step.song for step in steps} == {2, 3, 4, 5}
    assert {step.probability for step in steps} == {3 / 9, 1 / 9}  # of the model, before restriction


def test_every_step_is_explained_by_an_edge_that_holds_both_songs():
    rng = np.random.default_rng(10)
    graph = random_graph(rng, 30, 8)
    playlist = PlaylistModel(graph, rng.random(graph.n_edges)).generate(12, random_state=1)
    assert len(playlist.songs) == len(set(playlist.songs)) == 12
    assert playlist.note == ""
    assert playlist.opening.song == playlist.songs[0]
    assert playlist.opening.previous is None
    assert playlist.opening.song in graph.members(playlist.opening.edge)
    assert [step.previous for step in playlist.transitions] == list(playlist.songs[:-1])
    assert [step.song for step in playlist.transitions] == list(playlist.songs[1:])
    for step in playlist.transitions:
        assert {step.previous, step.song} <= set(graph.members(step.edge).tolist())
        assert step.name == graph.names[step.edge]


def test_the_seed_decides_and_the_model_has_one_of_its_own():
    graph = random_graph(np.random.default_rng(0), 30, 8)
    model = PlaylistModel(graph, np.ones(graph.n_edges), random_state=7)
    assert model.generate(10) == model.generate(10) == model.generate(10, random_state=7)
    assert model.generate(10) != model.generate(10, random_state=8)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(1, 15),
    spacing=st.integers(0, 4),
    n_groups=st.integers(1, 6),
    use_uniform=st.booleans(),
    repeat=st.booleans(),
)
def test_restrictions_hold_whatever_is_asked(seed, length, spacing, n_groups, use_uniform, repeat):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12, 5)
    groups = [None if rng.random() < 0.2 else f"artist {rng.integers(n_groups)}" for _ in range(12)]
    exclude = rng.permutation(12)[:2].tolist()
    playlist = PlaylistModel(graph, rng.random(graph.n_edges)).generate(
        length, random_state=rng, groups=groups, spacing=spacing, exclude=np.array(exclude),
        use_uniform=use_uniform, repeat=repeat,
    )  # fmt: skip
    songs = playlist.songs
    assert len(songs) == length or playlist.note
    assert len(playlist.transitions) == len(songs) - 1
    assert not set(exclude) & set(songs)
    if not repeat:
        assert len(set(songs)) == len(songs)
    for place, song in enumerate(songs[1:], start=1):
        assert song != songs[place - 1]
        near = [groups[other] for other in songs[max(0, place - spacing) : place]]
        assert groups[song] is None or groups[song] not in near


def test_spacing_is_no_stricter_than_asked():
    # Two artists can alternate forever with one song between, but not with two.
    model = PlaylistModel(build_edges(6), [1.0])
    arguments = {"groups": ["x", "y"] * 3, "random_state": 0}
    assert len(model.generate(6, spacing=1, **arguments).songs) == 6
    assert len(model.generate(6, spacing=2, **arguments).songs) == 2


def test_the_uniform_edge_is_the_last_resort_when_asked():
    graph = build_edges(6, tags=[["a"], ["a"], ["a"], [], [], []])
    model = PlaylistModel(graph, [1e-6, 1])
    playlist = model.generate(6, first=0, random_state=0, use_uniform=False)
    assert set(playlist.songs[:3]) == {0, 1, 2}
    names = [step.name for step in playlist.transitions]
    assert names == ["tag:a", "tag:a", *["uniform:all"] * 3]
    assert [step.probability for step in playlist.transitions[2:]] == [0.0] * 3
    assert len(playlist.songs) == 6


def test_an_exhausted_collection_stops_early_and_says_so():
    graph = random_graph(np.random.default_rng(0), 5, 3)
    model = PlaylistModel(graph, np.ones(graph.n_edges))
    playlist = model.generate(9, random_state=0)
    assert sorted(playlist.songs) == [0, 1, 2, 3, 4]
    assert playlist.note == "stopped at 5 of 9 songs: no songs are left"
    blocked = model.generate(9, first=0, random_state=0, groups=["x"] * 5, spacing=1)
    assert blocked.songs == (0,)
    assert "the 4 remaining songs are all by artists of the last 1 songs" in blocked.note


def test_drawing_again_from_here_keeps_the_first_songs():
    rng = np.random.default_rng(12)
    graph = random_graph(rng, 20, 6)
    model = PlaylistModel(graph, rng.random(graph.n_edges))
    whole = model.generate(8, random_state=1)
    again = model.generate(8, random_state=2, prefix=whole.songs[:4])
    assert again.songs[:4] == whole.songs[:4]
    assert again.songs[4:] != whole.songs[4:]
    assert len(set(again.songs)) == 8
    assert len(again.transitions) == 7
    assert again.opening is None
    best = model.transition_edges(whole.songs[0], whole.songs[1])[0]
    assert again.transitions[0].edge == best[0]
    assert model.generate(4, prefix=whole.songs[:4]).songs == whole.songs[:4]


def test_a_prefix_may_hold_what_the_walk_never_would():
    graph = build_edges(4, tags=[["a"], ["a"], ["b"], ["b"]], uniform=False)
    playlist = PlaylistModel(graph, [1, 1]).generate(4, prefix=[0, 0, 2], random_state=0)
    assert playlist.songs == (0, 0, 2, 3)
    assert [step.reason for step in playlist.transitions] == [
        "the same song again",
        "nothing in common that the model knows of",
        "both tagged b",
    ]


@pytest.mark.parametrize("edge_probability", EDGE_PROBABILITIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_between_two_songs_by_their_posterior(edge_probability, weighted):
    rng = np.random.default_rng(13)
    graph = random_graph(rng, weighted=weighted)
    model = PlaylistModel(graph, rng.random(graph.n_edges), edge_probability=edge_probability)
    edges, leave = model.edge_probabilities(4)
    p = graph.song_weight
    joint = {
        int(e): chance * p[7] / (graph.mass[e] - p[4])
        for e, chance in zip(edges, leave, strict=True)
        if 7 in graph.members(e)
    }
    found = model.transition_edges(4, 7)
    assert [probability for *_, probability in found] == sorted((f[2] for f in found), reverse=True)
    assert {e for e, *_ in found} == set(joint)
    for e, name, probability in found:
        assert name == graph.names[e]
        assert probability == pytest.approx(joint[e] / sum(joint.values()))
    assert model.transition_edges(4, 4) == []


# --- small collections, bad input ----------------------------------------------------------------


def test_an_empty_collection_gives_an_empty_playlist():
    playlist = PlaylistModel(build_edges(0), []).generate(5, random_state=0)
    assert (playlist.songs, playlist.transitions, playlist.opening) == ((), (), None)
    assert playlist.note == "stopped at 0 of 5 songs: no songs are left"


def test_a_collection_of_one_song_gives_this_song():
    model = PlaylistModel(build_edges(1), [])
    for first in (None, 0):
        playlist = model.generate(3, first=first, random_state=0)
        assert playlist.songs == (0,)
        assert playlist.note == "stopped at 1 of 3 songs: no songs are left"
    assert model.log_probability([[0]]).tolist() == [0.0]
    with pytest.raises(ValueError, match="needs at least two songs"):
        model.fit([[0]])


def test_a_collection_of_two_songs_alternates():
    model = PlaylistModel(build_edges(2)).fit([[0, 1]])
    assert model.weights_.tolist() == [1.0]
    assert model.transition_probabilities(0).tolist() == [0.0, 1.0]
    assert model.generate(5, first=0, repeat=True, random_state=0).songs == (0, 1, 0, 1, 0)
    assert model.relative_gain([[0, 1]]) == pytest.approx(0.0)


def test_weights_are_needed_before_anything_else():
    graph = build_edges(3)
    with pytest.raises(NotFittedError, match="has no weights yet: call fit"):
        PlaylistModel(graph).generate(2)
    assert not hasattr(PlaylistModel(graph), "weights_")


def test_clones_share_parameters_but_not_what_was_learned():
    graph = random_graph(np.random.default_rng(0))
    model = PlaylistModel(graph, edge_probability="bayes", prior=2.0).fit([[0, 1, 2]])
    twin = clone(model)
    assert twin.get_params()["prior"] == 2.0
    assert not hasattr(twin, "weights_")
    np.testing.assert_array_equal(twin.fit([[0, 1, 2]]).weights_, model.weights_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"prior": 0.5}, "prior must be at least 1"),
        ({"prior": [1, 1]}, r"prior has shape \(2,\)"),
        ({"uniform_floor": 1.0}, "uniform_floor=1.0"),
        ({"edge_probability": "size"}, "edge_probability='size'"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_bad_parameters_are_named_by_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        PlaylistModel(build_edges(4, years=[1990, 1990, 2000, 2000]), **parameters).fit([[0, 1]])


@pytest.mark.parametrize(
    ("playlists", "message"),
    [
        ([[0, 1], [2, 4]], r"playlists\[1\] has song 4, but the model has songs 0 to 3"),
        ([[-1, 0]], "has song -1"),
        ([[0.5, 1]], "must be a list of song rows"),
        ([0, 1], "must be a list of song rows"),
        ([], "nothing to learn from"),
        ([[]], "nothing to learn from"),
    ],
)
def test_bad_playlists_are_named(playlists, message):
    with pytest.raises(ValueError, match=message):
        PlaylistModel(build_edges(4)).fit(playlists)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "length=0"),
        ({"length": 2, "first": 4}, "first=4 must be a song"),
        ({"length": 2, "first": True + 0.5}, r"first=1.5 must be a song"),
        ({"length": 2, "exclude": [9]}, "exclude=9 must be a song"),
        ({"length": 2, "exclude": np.array([0, 9])}, "exclude=.*9.* must be a song"),
        ({"length": 2, "exclude": [0, 1.5]}, "exclude=1.5 must be a song"),
        ({"length": 2, "exclude": np.array([[0]])}, "must be a song"),
        ({"length": 2, "prefix": [0, 1, 2]}, "prefix has 3 songs, more than length=2"),
        ({"length": 3, "prefix": [0, 1], "first": 1}, "first puts song 1 at position 0|prefix puts"),
        ({"length": 2, "spacing": -1}, "spacing=-1"),
        ({"length": 2, "groups": ["x"]}, "groups has 1 entries for 4 songs"),
    ],
)
def test_bad_requests_are_named_by_generate(arguments, message):
    with pytest.raises(ValueError, match=message):
        PlaylistModel(build_edges(4), [1.0]).generate(**arguments)


@pytest.mark.parametrize("weights", [[1.0, 2.0], [-1.0], [np.nan], [0.0]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        PlaylistModel(build_edges(4), weights).generate(2)


# --- public data ---------------------------------------------------------------------------------


@pytest.mark.skipif(not YES_SMALL.is_dir(), reason="no yes.com playlists: set MUSICSIM_SHARED_DATA")
def test_tags_explain_radio_playlists_as_well_as_the_prototype():
    playlists, tags = read_yes(YES_SMALL)
    order = np.random.default_rng(0).permutation(len(playlists))
    cut = int(0.8 * len(playlists))
    train, test = ([playlists[i] for i in part] for part in (order[:cut], order[cut:]))
    graph = build_edges(len(tags), tags=tags)
    model = PlaylistModel(graph).fit(train)
    assert model.converged_
    moves = sum(len(playlist) - 1 for playlist in test)
    first = model.log_probability([playlist[:1] for playlist in test])
    per_move = (model.log_probability(test) - first).sum() / moves
    uniform = -np.log(len(tags) - 1)
    # A prototype reached -7.527, gain 6.6 %. Five splits here gave -7.541 to -7.547 with the first songs in the
    # objective (the likelihood of the thesis), and -7.507 without them. 0.03 covers these values.
    assert per_move == pytest.approx(-7.527, abs=0.03)
    assert 1 - per_move / uniform == pytest.approx(0.066, abs=0.004)
