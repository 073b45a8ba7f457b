"""Bit codes: measures, splits and fits of both experiments, on made-up classes and on the public sets."""

import numpy as np
import pytest

from experiments import hashing as experiment
from experiments import hashing_tables
from experiments.hashing_tables import measured_regression, shortlist, with_hidden_units
from experiments.support.hashing import (
    Part,
    artist_part,
    covtype_part,
    gtzan_part,
    mnist_part,
    nearest_relevance,
    sift_part,
)
from musicsim.hashing import pack_bits
from musicsim.relevance import Relevance
from tests.shared import needs_data

# --- hashing ---------------------------------------------------------------------------------------------


needs_sets = needs_data("mnist")


@needs_sets
@pytest.mark.parametrize(
    ("load", "shape", "n_test", "n_classes"),
    [
        (mnist_part, (10_000, 784), 10_000, 10),
        (lambda: covtype_part(0), (8_000, 54), 2_000, 7),
        (lambda: sift_part(0), (9_000, 128), 1_000, 1),
        (lambda: gtzan_part(0), (700, 57), 300, 10),
        (lambda: artist_part(0), (1_633, 13), 700, 351),
    ],
    ids=["mnist", "covtype", "sift", "gtzan", "artists"],
)
def test_parts_have_stated_sizes(load, shape, n_test, n_classes):
    part = load()
    assert part.X.shape == shape
    assert part.X_test.shape == (n_test, shape[1])
    assert len(part.y) == shape[0]
    assert len(part.y_test) == n_test
    assert len(np.unique(part.y.reshape(shape[0], -1)[:, -1])) == n_classes


def test_whole_sets_of_scikit_learn_replace_absent_files(shared, monkeypatch, rng):
    y = rng.integers(10, size=70_000)
    X = np.c_[y, np.arange(70_000) % 2].astype(float)
    monkeypatch.setattr("experiments.support.hashing.load", lambda name: (X, y))
    digits = mnist_part()
    assert (len(digits.X), len(digits.X_test)) == (10_000, 10_000)
    assert np.array_equal(digits.y, np.sort(y[:10_000])), "sorted, like the file"
    assert np.array_equal(digits.X[:, 0] * 255.0, digits.y)
    assert np.array_equal(digits.y_test, y[60_000:])
    assert (len(covtype_part(0).X), len(covtype_part(0).X_test)) == (8_000, 2_000)


def test_fetched_sets_are_used_whole(shared, monkeypatch, rng):
    n_of = {"mnist": 70_000, "covtype": 581_012}
    sets = {name: (np.c_[np.arange(n) % 2, np.arange(n)].astype(float), np.arange(n) % 5) for name, n in n_of.items()}
    monkeypatch.setattr("experiments.support.hashing.load", sets.__getitem__)
    monkeypatch.setattr("experiments.support.hashing.is_present", sets.__contains__)
    digits = experiment.load_part(experiment.MNIST, 0, whole=True)
    assert (len(digits.X), len(digits.X_test)) == (60_000, 10_000)
    assert np.array_equal(np.r_[digits.y, digits.y_test], sets["mnist"][1])
    covers = experiment.load_part(experiment.COVTYPE, 0, whole=True)
    assert (len(covers.X), len(covers.X_test)) == (522_911, 58_101)
    assert abs(covers.X[:, 1].mean()) < 1e-6
    monkeypatch.setattr("experiments.support.hashing.is_present", lambda name: False)
    assert len(covtype_part(0, whole=True).X) == 8_000, "a sample, if the file is there but not the whole set"


@needs_sets
def test_each_artist_has_one_tag():
    part = artist_part(0)
    pairs = np.unique(np.concatenate([part.y, part.y_test]), axis=0)
    assert len(pairs) == len(np.unique(part.y[:, 1])) == 351


def test_precision_counts_near_rows():
    codes = pack_bits([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]])
    queries = pack_bits([[0, 0, 0, 0], [1, 1, 0, 0]])
    relevance = Relevance.from_lists([[0, 3], [1]], 4, outside=True)
    # the first finds 0 and 1, of which 0 is relevant; the second nothing
    assert experiment.precision(codes, queries, relevance) == pytest.approx(0.25)


def test_nearest_rows_are_relevant(rng, monkeypatch):
    monkeypatch.setattr("experiments.support.hashing.N_NEAREST", 3)
    X, queries = rng.normal(size=(30, 4)), rng.normal(size=(5, 4))
    for relevance, asked in ((nearest_relevance(X), X), (nearest_relevance(X, queries), queries)):
        distances = np.linalg.norm(asked[:, None] - X, axis=2)
        if asked is X:
            np.fill_diagonal(distances, np.inf)
        truth = np.sort(np.argsort(distances, axis=1)[:, :3], axis=1)
        assert [relevance.relevant(i).tolist() for i in range(len(asked))] == truth.tolist()


def test_validation_holds_fifth_of_training_rows(rng):
    part = Part("x", np.arange(50.0)[:, None], np.arange(50), np.zeros((3, 1)), np.zeros(3))
    inner = part.validation(0)
    assert len(inner.X) == 40
    assert sorted([*inner.y, *inner.y_test]) == list(range(50))
    assert np.array_equal(inner.X[:, 0], inner.y)


@pytest.fixture
def small(rng, monkeypatch):
    """Every set of the experiment, made up and small."""
    y = np.arange(240) % 4
    X = np.c_[np.eye(4)[y] + 0.2 * rng.normal(size=(240, 4)), rng.normal(size=(240, 4))]
    levels = np.stack([y // 2, y], axis=1)

    def part(name, seed, whole):
        labels = levels if name == experiment.ARTISTS else y
        return Part(name, X[:180], labels[:180], X[180:], labels[180:])

    monkeypatch.setattr(experiment, "load_part", part)
    monkeypatch.setattr("experiments.support.hashing.N_NEAREST", 10)
    monkeypatch.setattr(experiment, "PRINTED_STEPS", 40)


@pytest.mark.parametrize("name", [experiment.GTZAN, experiment.ARTISTS, experiment.SIFT])
def test_every_method_is_fitted_and_measured(small, name):
    short = {**experiment.LEARNED[name], "ranknet_steps": 60, "lambdarank_steps": 40}
    values = {}
    for method in (*experiment.METHODS, experiment.PRINTED, *experiment.EXTRA_METHODS.get(name, (experiment.HIDDEN,))):
        result = experiment.run_job(experiment.Job(name, method, 8, 0), short, 0, whole=False)
        values[method] = result.value
        assert 0 <= result.value <= 100
    learned = [values[experiment.RANKNET], values[experiment.LAMBDARANK]]
    if name == experiment.GTZAN:  # errors; classes are easy to learn and hidden by noise
        assert max(*learned, values[experiment.HIDDEN]) < values[experiment.RANDOM]
    if name == experiment.ARTISTS:  # levels that are right
        assert values[experiment.HIERARCHY] > values[experiment.RANDOM]


def test_full_protocol_selects_settings_on_training_rows(small):
    grid = {"ranknet_steps": (0, 40), "lambdarank_steps": (0,)}
    protocol = experiment.Protocol({}, {}, grid)
    _, chosen = experiment.choose_settings(experiment.GTZAN, protocol, 0)
    assert chosen["ranknet_steps"] == 40  # weights drawn at random are worse


# --- hashing tables --------------------------------------------------------------------------------------


def rings(n, seed):
    """Two classes that no line parts: near the middle, and around it."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 64))
    X *= ((1.0 + 2.0 * y) / np.linalg.norm(X, axis=1))[:, None]
    return X, y


def test_shortlist_is_smallest_set_of_whole_bins():
    distances = np.random.default_rng(0).integers(9, size=(50, 30))
    for row, mask in zip(distances, shortlist(distances, 0.2), strict=True):
        edge = next(edge for edge in range(9) if np.count_nonzero(row <= edge) >= 6)
        assert np.array_equal(mask, row <= edge)


def test_hidden_units_separate_nonlinear_classes():
    part = with_hidden_units(Part("rings", *rings(600, 0), *rings(200, 1)), 0)
    weights = np.linalg.lstsq(np.c_[part.X, np.ones(600)], 2.0 * part.y - 1.0, rcond=None)[0]
    said = np.c_[part.X_test, np.ones(200)] @ weights > 0
    assert np.mean(said == part.y_test) > 0.9


def test_rivals_get_principal_components():
    X, y = rings(300, 0)
    part = Part("rings", X, y, *rings(50, 1))
    assert hashing_tables.learn_metric(part, "NCA", 5, 100, 0).shape == (5, 64)
    assert np.array_equal(hashing_tables.learn_metric(part, "Euclid", 5, 100, 0), np.eye(64))


def test_regression_error_is_relative_to_mean():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(500, 4)), rng.normal(size=500)
    y = X[:, 0] + 0.1 * noise
    part = Part("line", X[:400], y[:400], X[400:], y[400:])
    found = measured_regression(part, hashing_tables.Protocol((30, 5), 1, 50, ()), 0)
    assert found["line"] == pytest.approx(0.01, abs=0.01)
    assert found["RankNet, 64 bits"] < found["random projection, 64 bits"] + 0.3 < 1.3


@needs_data("spotify_msd")
def test_danceability_is_excluded_from_features():
    part = hashing_tables.regression_part(0)
    assert part.X.shape[1] == 12
    assert len(part.X) + len(part.X_test) == 16_071
    correlations = [abs(np.corrcoef(column, part.y)[0, 1]) for column in part.X.T]
    assert max(correlations) < 0.9
