"""Tests of the hashes as estimators, and of the benefit of learning."""

import itertools
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from musicsim.hashing import (
    RandomProjectionHash,
    RankHash,
    SpectralHash,
    bin_mean,
    bin_vote,
    hamming_distances,
    unpack_bits,
)
from musicsim.relevance import Relevance

SHORT = {"ranknet_steps": 60, "lambdarank_steps": 40, "lambdarank_documents": 200, "random_state": 0}
HASHES = [RankHash(24, **SHORT), RandomProjectionHash(24, random_state=0), SpectralHash(24)]
WITH_UNITS = RankHash(24, n_hidden=20, **SHORT)
each_hash = pytest.mark.parametrize("hashing", HASHES, ids=lambda h: type(h).__name__)
each_hash_and_units = pytest.mark.parametrize(
    "hashing", [*HASHES, WITH_UNITS], ids=[*(type(h).__name__ for h in HASHES), "hidden units"]
)


@pytest.fixture
def songs(rng):
    """Return three classes in three of fifteen columns, with the others louder."""
    y = np.arange(450) % 3
    X = np.c_[np.eye(3)[y] + 0.25 * rng.normal(size=(450, 3)), 0.8 * rng.normal(size=(450, 12))]
    return X, y


def error(hashing, X, y, n_train=300):
    codes = hashing.fit(X[:n_train], y[:n_train]).transform(X)
    return np.mean(bin_vote(codes[:n_train], y[:n_train], codes[n_train:]) != y[n_train:])


@pytest.mark.long
@each_hash_and_units
def test_clones_with_same_seed_give_same_codes(hashing, songs):
    X, y = songs
    twin = clone(hashing)
    assert twin.get_params() == hashing.get_params()
    codes = clone(hashing).fit(X, y).transform(X)
    assert np.array_equal(twin.fit_transform(X, y), codes)
    assert codes.dtype == np.uint64
    assert codes.shape == (len(X), 1)
    assert not (codes >> np.uint64(24)).any()


@each_hash
@pytest.mark.parametrize("n_bits", [1, 64, 65])
def test_supports_any_number_of_bits(hashing, songs, n_bits):
    X, y = songs
    fitted = clone(hashing).set_params(n_bits=n_bits).fit(X, y)
    codes = fitted.transform(X)
    assert codes.shape == (len(X), -(-n_bits // 64))
    assert len(fitted.get_feature_names_out()) == codes.shape[1]
    # every bit is informative: additional bits are waves of higher frequency, or further planes
    assert (np.ptp(unpack_bits(codes, n_bits).astype(int), axis=0) == 1).all()


@each_hash_and_units
def test_code_depends_on_its_row_only(hashing, songs, monkeypatch):
    X, y = songs
    fitted = clone(hashing).fit(X, y)
    codes = fitted.transform(X)
    monkeypatch.setattr("musicsim.hashing.base.ROWS_AT_ONCE", 7)
    assert np.array_equal(fitted.transform(X), codes)
    assert np.array_equal(fitted.transform(X[5:6]), codes[5:6])
    assert np.array_equal(fitted.transform(X.tolist()), codes)


@pytest.mark.parametrize("method", ["ranknet", "lambdarank"])
def test_learned_codes_beat_random_codes(songs, method):
    X, y = songs
    # two thirds of the songs would be wrong by chance
    assert error(RandomProjectionHash(24, random_state=0), X, y) > 0.25
    assert error(RankHash(24, method=method, **SHORT), X, y) < 0.08


def test_learned_codes_classify_digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    learned = error(RankHash(32, **{**SHORT, "ranknet_steps": 120, "lambdarank_steps": 40}), X, y, 1200)
    assert learned < 0.5 * error(RandomProjectionHash(32, random_state=0), X, y, 1200)
    assert learned < error(SpectralHash(32), X, y, 1200)


@pytest.mark.long
def test_hidden_units_separate_nonlinear_classes(rng):
    X = rng.normal(size=(600, 2))
    y = np.square(X).sum(axis=1) > 2 * np.log(2)  # half of all
    wrong = []
    # with steps ten times as long, a single noise-free bit is sometimes the same for all rows
    settings = {"ranknet_steps": 300, "lambdarank_steps": 0, "n_targets": None, "noise": 0.0, "step_size": 30.0}
    for n_hidden in (0, 30):
        one_bit = RankHash(1, n_hidden=n_hidden, random_state=0, **settings)
        bit = one_bit.fit(X[:400], y[:400]).transform(X[400:])[:, 0] == 1
        wrong.append(min(np.mean(bit == y[400:]), np.mean(bit != y[400:])))
    assert wrong[0] > 0.25
    assert wrong[1] < 0.08


def test_hidden_unit_bits_start_balanced(songs):
    X, y = songs
    start = RankHash(8, n_hidden=20, ranknet_steps=0, lambdarank_steps=0, random_state=0).fit(X, y)
    # inputs have a mean of 0 on their grid, so the bias is the mean
    np.testing.assert_allclose(start.projection_.bias * start.projection_.units, 0, atol=1e-6)
    shares = unpack_bits(start.transform(X), 8).mean(axis=0)
    assert (np.abs(shares - 0.5) < 0.2).all()


@pytest.mark.parametrize("n_hidden", [0, 20])
def test_hash_from_arrays_gives_same_codes(songs, n_hidden):
    X, y = songs
    fitted = RankHash(24, n_hidden=n_hidden, **SHORT).fit(X, y)
    again = RankHash.from_arrays(fitted.arrays())
    assert (again.n_features_in_, again.n_hidden) == (X.shape[1], n_hidden)
    assert np.array_equal(again.transform(X), fitted.transform(X))


def test_regression_codes_predict_target(songs, rng):
    X, _ = songs
    t = X[:, 0] - X[:, 1] + 0.05 * rng.normal(size=len(X))
    hashing = RankHash(24, "regression", **SHORT)
    for h, least, most in ((hashing, 0.7, 1.0), (RandomProjectionHash(24, random_state=0), -1.0, 0.35)):
        codes = h.fit(X[:300], t[:300]).transform(X)
        explained = 1 - np.mean((bin_mean(codes[:300], t[:300], codes[300:]) - t[300:]) ** 2) / t[300:].var()
        assert least < explained < most


def test_retrieval_codes_bring_relevant_songs_near(songs):
    X, y = songs
    relevance = Relevance.from_labels(y)
    near = []
    for h in (RankHash(12, "retrieval", **SHORT), RandomProjectionHash(12, random_state=0)):
        codes = h.fit(X[:300], relevance.restrict(np.arange(300), np.arange(300))).transform(X)
        among = hamming_distances(codes[300:], codes[:300]) <= 1
        near.append(np.mean((y[300:, None] == y[:300])[among]))
    assert near[0] > 0.9
    assert near[1] < 0.6


def test_hierarchy_codes_distinguish_narrow_classes(songs, rng):
    X, wide = songs
    half = rng.integers(2, size=len(X))
    X = np.c_[X, half + 0.1 * rng.normal(size=len(X))]
    table = np.stack([wide, 2 * wide + half], axis=1)
    codes = RankHash(24, "hierarchy", **{**SHORT, "ranknet_steps": 200}).fit(X[:300], table[:300]).transform(X)
    found = bin_vote(codes[:300], table[:300], codes[300:])
    wrong = np.mean(found != table[300:], axis=0)
    assert wrong[0] < 0.1
    assert wrong[1] < 0.2
    assert np.array_equal(found[:, 0], found[:, 1] // 2)


def test_spectral_bits_are_signs_of_eigenfunctions(songs):
    X, _ = songs
    X = X * np.linspace(1, 3, X.shape[1])
    fitted = SpectralHash(20).fit(X)
    axes = np.linalg.eigh(np.cov(X.T))[1][:, ::-1]
    places = (X - X.mean(axis=0)) @ axes
    low, width = places.min(axis=0), np.ptp(places, axis=0)
    # the 20 smallest of (k / width)^2 over axes and k
    waves = sorted(((k / width[a]) ** 2, a, k) for a, k in itertools.product(range(X.shape[1]), range(1, 21)))[:20]
    truth = np.stack(
        [np.sin(np.pi / 2 + k * np.pi * (places[:, a] - low[a]) / width[a]) > 0 for _, a, k in waves], axis=1
    )
    bits = unpack_bits(fitted.transform(X), 20)
    # the sign of an axis is arbitrary, and negates waves of odd number
    agreement = np.mean(bits == truth, axis=0)
    np.testing.assert_allclose(np.maximum(agreement, 1 - agreement), 1.0, atol=1.5 / len(X))


def test_random_projection_bits_are_plane_sides(songs):
    X, _ = songs
    fitted = RandomProjectionHash(40, random_state=3).fit(X)
    planes = np.random.default_rng(3).normal(size=(X.shape[1], 40))
    assert np.array_equal(unpack_bits(fitted.transform(X), 40), (X - X.mean(axis=0)) @ planes > 0)


def test_zero_projection_gives_zero_bit():
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    fitted = RandomProjectionHash(16, random_state=0).fit(X)
    assert fitted.transform([[0.0, 0.0]]).tolist() == [[0]]
    assert fitted.transform(X[:1]) == ~fitted.transform(X[1:2]) & np.uint64(0xFFFF)


def test_callback_sees_every_step_and_can_stop_fit(songs):
    X, y = songs
    steps = []
    fitted = RankHash(8, **SHORT).fit(X, y, callback=lambda step: steps.append(step) or len(steps) == 70)
    assert fitted.n_steps_ == len(steps) == len(fitted.history_) == 70
    assert [step["phase"] for step in steps] == ["ranknet"] * 60 + ["lambdarank"] * 10
    assert [step["step"] for step in steps] == list(range(1, 71))
    wrong = [step["wrong"] for step in steps]
    assert np.mean(wrong[50:60]) < 0.5 * np.mean(wrong[:5])
    sizes = [step["step_size"] for step in steps]
    np.testing.assert_allclose(sizes, 300.0 * (1 - np.arange(70) / 100))
    assert fitted.transform(X).shape == (len(X), 1)


def test_fit_uses_one_blas_thread(songs, monkeypatch):
    inside = []

    @contextmanager
    def watched():
        inside.append(True)
        yield
        inside.append(False)

    monkeypatch.setattr("musicsim.hashing.rank_hash.one_blas_thread", watched)
    monkeypatch.setattr("musicsim.hashing.baselines.one_blas_thread", watched)
    X, y = songs
    RankHash(8, **SHORT).fit(X, y, callback=lambda step: inside == [True])
    SpectralHash(8).fit(X)
    assert inside == [True, False] * 2


def test_ranknet_method_runs_first_phase_only(songs):
    X, y = songs
    fitted = RankHash(8, method="ranknet", **SHORT).fit(X, y)
    assert {step["phase"] for step in fitted.history_} == {"ranknet"}
    assert fitted.n_steps_ == SHORT["ranknet_steps"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_bits": 0}, "n_bits=0 should be an integer from 1 to 1024"),
        ({"n_bits": 2.5}, "n_bits=2.5"),
        ({"task": "ndcg"}, "task='ndcg' should be one of classification, retrieval"),
        ({"method": "sgd"}, "method='sgd'"),
        ({"n_bins": 0}, "n_bins=0"),
        ({"radius": -1}, "radius=-1"),
        ({"n_components": 0}, "n_components=0"),
        ({"step_size": 0.0}, "step_size=0.0"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"temperature": np.inf}, "temperature=inf"),
        ({"temperature": 0.04}, r"temperature=0.04 must be at least 0.0457\d+ with n_bits=64"),
        ({"noise": -1}, "noise=-1"),
        ({"n_targets": 0}, "n_targets=0"),
        ({"n_hidden": -1}, "n_hidden=-1"),
        ({"ranknet_steps": -1}, "ranknet_steps=-1"),
        ({"lambdarank_documents": 1}, "lambdarank_documents=1"),
    ],
)
def test_rejects_bad_parameters(songs, change, message):
    with pytest.raises(ValueError, match=message):
        RankHash(**change).fit(*songs)


@pytest.mark.parametrize(
    ("task", "y", "message"),
    [
        ("classification", [0, 1, 0], "y has 3 entries, but X has 6 rows"),
        ("classification", [0] * 6, "at least two different labels"),
        ("classification", [0, 1, 2, 3, 4, 5], "at least two different labels"),
        ("classification", Relevance.from_labels([0, 1] * 3), "requires task='retrieval'"),
        ("retrieval", [0, 1] * 3, "y is a list; .* it must be a Relevance"),
        ("retrieval", Relevance.from_labels([0, 1] * 2), "y has 4 queries and 4 songs, but X has 6 rows"),
        ("retrieval", Relevance.from_labels(range(6)), "no query has a relevant song"),
        ("hierarchy", [0, 1] * 3, r"y has shape \(6,\); .* it must be \(n_rows, levels\)"),
        ("hierarchy", [[0, 1], [0, 2]], "y has 2 entries"),
        ("regression", [1.0, np.nan, 2, 3, 4, 5], "with task='regression', it must be"),
        ("regression", [1.0] * 6, "y is constant"),
    ],
)
def test_rejects_bad_y(rng, task, y, message):
    with pytest.raises(ValueError, match=message):
        RankHash(4, task).fit(rng.normal(size=(6, 2)), y)


@each_hash
@pytest.mark.parametrize("exponent", [-430, 430])
def test_scaling_by_power_of_two_keeps_codes(hashing, songs, exponent):
    X, y = songs
    codes = [clone(hashing).fit(rows, y).transform(rows) for rows in (X, np.ldexp(X, exponent))]
    assert np.array_equal(*codes)


@pytest.mark.long
@pytest.mark.parametrize("n_bits", [1, 64, 1024])
def test_smallest_temperature_still_learns(songs, n_bits):
    X, y = songs
    fitted = RankHash(n_bits, temperature=n_bits / 1400, **SHORT).fit(X, y)
    wrong = [step["wrong"] for step in fitted.history_ if step["phase"] == "ranknet"]  # later there may not be a pair
    assert np.isfinite(wrong).all()
    assert np.isfinite(fitted.projection_.weights).all()


@pytest.mark.parametrize("name", ["center", "exponents", "bias", "units"])
def test_rejects_mismatched_arrays(songs, name):
    arrays = RandomProjectionHash(8, random_state=0).fit(songs[0]).projection_
    arrays = {field: getattr(arrays, field) for field in arrays.__dataclass_fields__}
    RankHash.from_arrays(arrays)
    for wrong in (arrays[name][:-1], arrays[name][None], np.float64(1.0)):
        with pytest.raises(ValueError, match="do not match each other"):
            RankHash.from_arrays({**arrays, name: wrong})


@each_hash
def test_rejects_bad_rows(hashing, songs):
    X, y = songs
    hashing = clone(hashing)
    with pytest.raises(ValueError, match="All rows of X are equal"):
        hashing.fit(np.ones((5, 2)), [0, 0, 1, 1, 1])
    for scale in (1e-170, 1e160):
        with pytest.raises(ValueError, match=r"X has entries up to .* scale X"):
            hashing.fit(scale * X, y)
    with pytest.raises(ValueError, match="NaN"):
        hashing.fit(np.full((5, 2), np.nan), [0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="expecting 15 features"):
        hashing.fit(X, y).transform(X[:, :4])


def test_rejects_mismatched_hidden_units(songs):
    arrays = RankHash(8, n_hidden=5, **SHORT).fit(*songs).arrays()
    fewer = {name: array[..., :-1] for name, array in arrays.items() if name in {"hidden_bias", "hidden_units"}}
    fewer["hidden_weights"] = arrays["hidden_weights"][:, :-1]
    with pytest.raises(ValueError, match="do not match each other"):
        RankHash.from_arrays({**arrays, **fewer})
    with pytest.raises(KeyError, match="hidden_center"):
        RankHash.from_arrays({name: array for name, array in arrays.items() if name != "hidden_center"})
