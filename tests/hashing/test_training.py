"""Tests of gradients against finite differences, and of swap weights against actual swaps."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.hashing.gains import keep_targets, make_gains
from musicsim.hashing.training import Batch, Neighborhood, Projection
from musicsim.relevance import Relevance

N_QUERIES, N_DOCUMENTS, D, N_BITS = 5, 12, 4, 9


@pytest.fixture
def batch(rng):
    gains = rng.integers(3, size=(N_QUERIES, N_DOCUMENTS)).astype(float)
    gains[rng.random(gains.shape) < 0.2] = np.nan
    gains[3] = 1.0  # a query without pairs
    return Batch(rng.normal(size=(N_QUERIES, D)), rng.normal(size=(N_DOCUMENTS, D)), gains)


@pytest.fixture(params=[0, 6], ids=lambda k: f"{k} hidden units")
def projection(request, rng):
    k = request.param
    shapes = (D + k, N_BITS), N_BITS, (D, k), k, k
    return Projection(*(rng.normal(size=shape) for shape in shapes))


def bits(rows, projection):
    """Compute equation 1, with hidden units as further columns."""
    weights, bias, hidden_weights, hidden_bias = projection.arrays()
    sums = rows @ weights[:D] + bias
    for unit, row_of_weights in enumerate(weights[D:]):
        value = rows @ hidden_weights[:, unit] + hidden_bias[unit]
        value = np.where(value > 0, value, 0) / len(hidden_bias) ** 0.5 - projection.hidden_mean[unit]
        sums += np.outer(value, row_of_weights)
    return 1 / (1 + np.exp(-sums))


def relaxed_scores(batch, projection):
    """Compute equation 2, term by term."""
    h, g = (bits(rows, projection)[:, None] for rows in (batch.queries, batch.documents))
    g = g[:, 0][None]
    return (h * (1 - g) + (1 - h) * g).sum(axis=2)


def ranknet_cost(batch, projection, temperature):
    """Compute equations 3 and 4: the mean over queries of the mean over pairs of -log P."""
    scores = relaxed_scores(batch, projection) / temperature
    total = 0.0
    for s, gain in zip(scores, batch.gains, strict=True):
        costs = [
            np.log1p(np.exp(s[a] - s[b])) for a, b in itertools.permutations(range(N_DOCUMENTS), 2) if gain[a] > gain[b]
        ]
        total += np.mean(costs) if costs else 0.0
    return total / len(scores)


def lambdarank_cost(batch, projection, temperature, frozen, normalize=True):
    """Compute the same with |Delta S| weights of `frozen` weights and bias, which are constant for the gradient."""
    scores = relaxed_scores(batch, projection) / temperature
    total = 0.0
    for s, gain, swaps in zip(scores, batch.gains, frozen, strict=True):
        costs = [
            weight * np.log1p(np.exp((s[a] - s[b]) * np.sign(gain[a] - gain[b]))) for (a, b), weight in swaps.items()
        ]
        total += sum(costs) / ((sum(swaps.values()) or 1.0) if normalize else 1.0)
    return total / len(scores)


def swaps_by_definition(batch, projection, n_bins, score, beyond=True):
    """Compute |Delta S| by swapping each neighbor with documents within a third of the bits (figure 3)."""
    third = -(-N_BITS // 3)
    codes = [bits(rows, projection) > 0.5 for rows in (batch.queries, batch.documents)]
    found = []
    for code, gain in zip(codes[0], batch.gains, strict=True):
        distance = (code != codes[1]).sum(axis=1)
        known = np.flatnonzero(~np.isnan(gain))
        bins = sorted(set(distance[known].tolist()))
        edge = bins[:n_bins][-1]
        reach = edge + third if beyond else bins[:third][-1]
        inside = [i for i in known if distance[i] <= edge]
        outside = [i for i in known if edge < distance[i] <= reach]
        swaps = {}
        for a, b in itertools.product(inside, outside):
            swapped = [i for i in inside if i != a] + [b]
            swaps[a, b] = abs(score(gain[inside]) - score(gain[swapped]))
        found.append(swaps)
    return found


def differences(cost, projection, step=1e-5):
    """Return central differences by each weight and bias."""
    slopes = []
    for place in projection.arrays():
        slope = np.empty(place.shape)
        for index in np.ndindex(place.shape):
            held = place[index]
            place[index] = held + step
            up = cost()
            place[index] = held - step
            slope[index] = (up - cost()) / (2 * step)
            place[index] = held
        slopes.append(slope)
    return slopes


def assert_close(slopes, truth, atol):
    for slope, expected in zip(slopes, truth, strict=True):
        np.testing.assert_allclose(slope, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_ranknet_gradients_match_differences(batch, projection, temperature):
    truth = differences(lambda: ranknet_cost(batch, projection, temperature), projection)
    slopes, wrong = batch.slopes(projection, temperature, None)
    # central differences of step 1e-5 are accurate to about 1e-9 here
    assert_close(slopes, truth, 1e-8)
    assert 0 < wrong < 1


# S is a sum over neighbors for a hierarchy, and a mean for regression; division by the sum of weights cancels both
@pytest.mark.parametrize("score", [np.sum, np.mean])
@pytest.mark.parametrize("n_bins", [1, 3])
def test_lambdarank_gradients_use_swap_weights(batch, projection, score, n_bins):
    frozen = swaps_by_definition(batch, projection, n_bins, score)
    assert sum(map(len, frozen)) > N_QUERIES
    truth = differences(lambda: lambdarank_cost(batch, projection, 2.0, frozen), projection)
    slopes, _ = batch.slopes(projection, 2.0, Neighborhood(n_bins, 0))
    assert_close(slopes, truth, 1e-8)


def test_lambdarank_gradients_match_equation_5(batch, projection):
    # without division by the weights of a query's pairs, or swaps beyond the nearest third of the bins
    frozen = swaps_by_definition(batch, projection, 1, np.sum, beyond=False)
    assert sum(map(len, frozen)) > N_QUERIES
    truth = differences(lambda: lambdarank_cost(batch, projection, 1.0, frozen, normalize=False), projection)
    slopes, _ = batch.slopes(projection, 1.0, Neighborhood(1, 0, beyond=False), normalize=False)
    assert_close(slopes, truth, 1e-7)


def test_radius_is_absolute_threshold():
    distances = np.array([[0, 3, 6, 6], [5, 5, 6, 4]], dtype=np.int16)
    inner, outer = Neighborhood(None, 2).edges(distances, 6)
    assert (inner.tolist(), outer.tolist()) == ([2, 2], [4, 4])
    # the two nearest nonempty bins
    assert Neighborhood(None, 2, beyond=False).edges(distances, 6)[1].tolist() == [3, 5]


def test_batches_without_pairs_have_zero_gradient(rng, projection):
    batch = Batch(rng.normal(size=(2, D)), rng.normal(size=(3, D)), np.full((2, 3), np.nan))
    for neighborhood in (None, Neighborhood(3, 0)):
        slopes, wrong = batch.slopes(projection, 1.0, neighborhood)
        assert not any(slope.any() for slope in slopes)
        assert np.isnan(wrong)


def brute_score(score, query, neighbors, y):
    """Compute equations 7, 8, 10 and 11 (negated, so that more is better) for a list of neighbors."""
    if score == "classification":
        return sum(y[i] == y[query] for i in neighbors)
    if score == "retrieval":
        return sum(i in set(y.relevant(query).tolist()) for i in neighbors)
    if score == "hierarchy":
        same = [[a == b for a, b in zip(y[i], y[query], strict=True)] for i in neighbors]
        return sum(sum(all(row[: level + 1]) for level in range(len(row))) / len(row) for row in same)
    return -sum((y[i] - y[query]) ** 2 for i in neighbors) / len(neighbors)


@given(seed=st.integers(0, 10_000), score=st.sampled_from(["classification", "retrieval", "hierarchy", "regression"]))
def test_gain_difference_equals_effect_of_swap(seed, score):
    rng = np.random.default_rng(seed)
    n = 14
    y = {
        "classification": lambda: rng.permutation(np.arange(n) % 3),
        "retrieval": lambda: Relevance.from_lists([rng.choice(n, 4, replace=False) for _ in range(n)]),
        "hierarchy": lambda: np.stack([np.arange(n) % 2, rng.permutation(np.arange(n) % 5)], axis=1),
        "regression": lambda: rng.normal(size=n),
    }[score]()
    query, *others = rng.permutation(n)[:9].tolist()
    neighbors, coming = others[:-1], others[-1]
    gains = make_gains(score, y, n).gains(np.array([query]), np.arange(n))[0]
    before = brute_score(score, query, neighbors, y)
    # the score of regression is a mean, and its targets are divided by their deviation
    unit = np.var(y) / len(neighbors) if score == "regression" else 1.0
    for going in neighbors:
        after = brute_score(score, query, [coming if i == going else i for i in neighbors], y)
        assert (gains[coming] - gains[going]) * unit == pytest.approx(after - before)
    assert np.isnan(gains[query])


def test_retrieval_documents_include_relevant_ones(rng):
    n = 400
    relevance = Relevance.from_lists([[(i + 1) % n, (i + 2) % n] for i in range(n)])
    gains = make_gains("retrieval", relevance, n)
    queries = rng.choice(n, 10, replace=False)
    documents = gains.documents(queries, 30, rng)
    assert len(set(documents.tolist())) == 30
    relevant = {int(row) for q in queries for row in relevance.relevant(int(q))}
    assert len(relevant & set(documents.tolist())) >= min(15, len(relevant))
    asked = gains.gains(queries, documents)
    truth = [[np.nan if d == q else float(d in relevance.relevant(int(q))) for d in documents] for q in queries]
    np.testing.assert_array_equal(asked, truth)


def test_unknown_labels_match_nothing():
    gains = make_gains("classification", ["rock", None, "rock", None], 4).gains(np.arange(4), np.arange(4))
    nan = np.nan
    np.testing.assert_array_equal(gains, [[nan, 0, 1, 0], [0, nan, 0, 0], [1, 0, nan, 0], [0, 0, 0, nan]])


def test_lower_level_counts_only_if_upper_matches():
    y = [["rock", "punk"], ["rock", "folk"], ["jazz", "folk"], ["rock", "punk"]]
    gains = make_gains("hierarchy", y, 4).gains(np.array([0, 1]), np.arange(4))
    np.testing.assert_array_equal(gains, [[np.nan, 0.5, 0, 1], [0.5, np.nan, 0, 0.5]])


def test_targets_are_nearest_of_each_gain(rng):
    queries, documents = rng.normal(size=(6, 3)), rng.normal(size=(20, 3))
    gains = rng.integers(3, size=(6, 20)).astype(float)
    gains[:, 0] = np.nan
    kept = gains.copy()
    keep_targets(kept, queries, documents, 4)
    distances = np.linalg.norm(queries[:, None] - documents, axis=2)
    for gain, now, distance in zip(gains, kept, distances, strict=True):
        for level in (1.0, 2.0):
            rows = np.flatnonzero(gain == level)
            nearest = rows[np.argsort(distance[rows])[:4]]
            assert sorted(np.flatnonzero(now == level)) == sorted(nearest)
        assert np.array_equal(now == 0, gain == 0)
    same = gains.copy()
    keep_targets(same, queries, documents, 20)
    np.testing.assert_array_equal(same, gains)
