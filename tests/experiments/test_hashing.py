"""The experiment on bit codes: its measures, its splits and its table."""

import numpy as np
import pytest

from experiments import hashing as experiment
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
from tests.shared import SHARED

needs_sets = pytest.mark.skipif(
    not (SHARED / "mnist").is_dir(), reason="no digits: set MUSICSIM_SHARED_DATA to the folder of public data sets"
)


@needs_sets
@pytest.mark.parametrize(
    ("load", "shape", "n_test", "n_classes"),
    [
        (lambda: mnist_part(SHARED), (10_000, 784), 10_000, 10),
        (lambda: covtype_part(SHARED, 0), (8_000, 54), 2_000, 7),
        (lambda: sift_part(SHARED, 0), (9_000, 128), 1_000, 1),
        (lambda: gtzan_part(SHARED, 0), (700, 57), 300, 10),
        (lambda: artist_part(SHARED, 0), (1_633, 13), 700, 351),
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


@needs_sets
def test_each_artist_has_one_tag():
    part = artist_part(SHARED, 0)
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

    def part(name, shared, seed):
        labels = levels if name == experiment.ARTISTS else y
        return Part(name, X[:180], labels[:180], X[180:], labels[180:])

    monkeypatch.setattr(experiment, "load_part", part)
    monkeypatch.setattr("experiments.support.hashing.N_NEAREST", 10)
    monkeypatch.setattr(experiment, "PRINTED_STEPS", 40)


@pytest.mark.parametrize("name", [experiment.GTZAN, experiment.ARTISTS, experiment.SIFT])
def test_every_method_is_fitted_and_measured(small, tmp_path, name):
    short = {**experiment.LEARNED[name], "ranknet_steps": 60, "lambdarank_steps": 40}
    values = {}
    for method in (*experiment.METHODS, experiment.PRINTED, *experiment.EXTRA_METHODS.get(name, (experiment.HIDDEN,))):
        result = experiment.run_job(experiment.Job(name, method, 8, 0), tmp_path, short, 0)
        values[method] = result.value
        assert 0 <= result.value <= 100
    learned = [values[experiment.RANKNET], values[experiment.LAMBDARANK]]
    if name == experiment.GTZAN:  # errors; classes are easy to learn and hidden by noise
        assert max(*learned, values[experiment.HIDDEN]) < values[experiment.RANDOM]
    if name == experiment.ARTISTS:  # levels that are right
        assert values[experiment.HIERARCHY] > values[experiment.RANDOM]


def test_full_protocol_selects_settings_on_training_rows(small, tmp_path):
    grid = {"ranknet_steps": (0, 40), "lambdarank_steps": (0,)}
    protocol = experiment.Protocol({}, {}, grid)
    _, chosen = experiment.choose_settings(experiment.GTZAN, tmp_path, protocol, 0)
    assert chosen["ranknet_steps"] == 40  # weights drawn at random are worse
