"""Tests of choosing C on held-out artists."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, StratifiedKFold

from musicsim.evaluation import ArtistSplit, ranking_scores
from musicsim.library.processes.pools import LocalPool, map_of
from musicsim.library.processes.workers import Limits
from musicsim.metric import MLR, MLRCV
from musicsim.metric.oracles import Oracle
from musicsim.metric.stochastic import Passes
from musicsim.relevance import Relevance

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def songs():
    """Return songs by thirty artists of four genres: columns for genre and artist, and noise."""
    rng = np.random.default_rng(0)
    artists = np.repeat(np.arange(30), 6)
    genres = artists % 4
    X = np.c_[
        genres + 0.4 * rng.normal(size=180),
        rng.normal(size=30)[artists] * 4 + 0.1 * rng.normal(size=180),
        2 * rng.normal(size=(180, 4)),
    ]
    return X, genres, artists


@pytest.fixture(scope="module")
def fitted(songs):
    X, genres, artists = songs
    return MLRCV(MLR(tol=1e-2), Cs=[100.0, 0.01, 1.0]).fit(X, genres, groups=artists)


def test_learned_metric_beats_euclidean_on_other_artists(fitted):
    assert fitted.scores_.mean(axis=0).max() > fitted.untrained_ + 0.1


def test_best_c_is_refitted_on_all_songs(fitted, songs):
    X, genres, _ = songs
    assert fitted.Cs_.tolist() == [0.01, 1.0, 100.0]
    alone = MLR(tol=1e-2, C=fitted.C_).fit(X, genres)
    np.testing.assert_allclose(fitted.metric_, alone.metric_, rtol=1e-9)
    np.testing.assert_array_equal(fitted.transform(X), fitted.best_.transform(X))


def test_weights_are_those_of_all_fits(fitted, songs):
    X, genres, artists = songs
    weights = np.where(genres == 0, 5.0, 0.0)  # only songs of one genre are queries
    weighted = MLRCV(MLR(tol=1e-2), Cs=[1.0]).fit(X, genres, groups=artists, sample_weight=weights)
    alone = MLR(tol=1e-2, C=1.0).fit(X, genres, sample_weight=weights)
    np.testing.assert_allclose(weighted.metric_, alone.metric_, rtol=1e-9)
    splits = list(ArtistSplit(3, 0.3, random_state=0).split(X, groups=artists))
    for score, (train, validation) in zip(weighted.scores_[:, 0], splits, strict=True):
        mlr = MLR(tol=1e-2, C=1.0).fit(X[train], genres[train], sample_weight=weights[train])
        relevance = Relevance.from_labels(genres).restrict(validation, train)
        alone = ranking_scores(mlr.transform(X[validation]), mlr.transform(X[train]), relevance)["auc"]
        assert score == pytest.approx(alone, abs=1e-9)
    assert not np.allclose(weighted.scores_[:, 0], fitted.scores_[:, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        MLRCV().fit(X, genres, sample_weight=weights[:5])


def test_scores_match_separate_fits_on_artist_splits(fitted, songs):
    X, genres, artists = songs
    for s, (train, validation) in enumerate(ArtistSplit(3, 0.3, random_state=0).split(X, groups=artists)):
        assert not set(artists[train]) & set(artists[validation])
        relevance = Relevance.from_labels(genres).restrict(validation, train)
        for c, C in enumerate(fitted.Cs_):
            mlr = MLR(tol=1e-4, C=C).fit(X[train], genres[train])
            score = ranking_scores(mlr.transform(X[validation]), mlr.transform(X[train]), relevance)["auc"]
            # two metrics within 1 % of the optimum rank nearly alike
            assert fitted.scores_[s, c] == pytest.approx(score, abs=0.02)


@pytest.mark.long
def test_worker_processes_give_same_scores(fitted, songs):
    X, genres, artists = songs
    workers = map_of(LocalPool(2), Limits(seconds=300.0, memory_mb=4096))
    other = MLRCV(MLR(tol=1e-2), Cs=[100.0, 0.01, 1.0]).fit(X, genres, groups=artists, workers=workers)
    np.testing.assert_array_equal(other.scores_, fitted.scores_)
    np.testing.assert_array_equal(other.metric_, fitted.metric_)


@pytest.mark.long
def test_tolerance_prefers_smaller_c(songs):
    X, genres, artists = songs
    best = MLRCV(MLR(tol=1e-2), Cs=[10.0, 100.0]).fit(X, genres, groups=artists)
    lenient = clone(best).set_params(tolerance=1e6).fit(X, genres, groups=artists)
    assert lenient.C_ == 10.0 <= best.C_


def test_accepts_given_splits(songs):
    X, genres, _ = songs
    half = np.arange(180) % 2
    cv = MLRCV(MLR(tol=1e-2), Cs=[1.0], cv=[(np.flatnonzero(half == 0), np.flatnonzero(half == 1))], scoring="map")
    assert cv.fit(X, genres).scores_.shape == (1, 1)


def test_number_of_splits_means_splits_by_artist(songs):
    X, genres, artists = songs
    splits = list(ArtistSplit(2, 0.3, random_state=0).split(X, groups=artists))
    given = MLRCV(MLR(tol=0.1), Cs=[1.0], cv=splits).fit(X, genres)
    np.testing.assert_array_equal(
        MLRCV(MLR(tol=0.1), Cs=[1.0], cv=2).fit(X, genres, groups=artists).scores_, given.scores_
    )


@pytest.mark.parametrize("folds", [StratifiedKFold(2), GroupKFold(3)])
def test_splitters_get_labels_and_artists(songs, folds):
    X, genres, artists = songs
    given = MLRCV(MLR(tol=0.1), Cs=[1.0], cv=list(folds.split(X, genres, artists))).fit(X, genres)
    relevance = Relevance.from_labels([f"genre {g}" for g in genres])
    chosen = MLRCV(MLR(tol=0.1), Cs=[1.0], cv=folds).fit(X, relevance, groups=artists)
    np.testing.assert_array_equal(chosen.scores_, given.scores_)


@pytest.mark.parametrize(
    ("cv", "message"), [(StratifiedKFold(2), "without labels"), (0, "cv=0"), ("three", "Expected `cv`")]
)
def test_rejects_unusable_splits(songs, cv, message):
    with pytest.raises(ValueError, match=message):
        MLRCV(cv=cv).fit(songs[0], Relevance.from_lists([[0]] * 180))


def test_callback_sees_every_fit_and_stops(songs):
    X, genres, artists = songs
    told = []
    MLRCV(MLR(tol=1e-2), Cs=[0.1, 1.0]).fit(X, genres, groups=artists, callback=told.append)
    assert {(step["split"], step["C"]) for step in told} >= {(0, 0.1), (0, 1.0), (2, 1.0)}
    assert told[-1]["split"] is None
    with pytest.raises(ValueError, match="no split was scored"):
        MLRCV(Cs=[0.1, 1.0]).fit(X, genres, groups=artists, callback=lambda step: True)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [({"Cs": []}, "Cs="), ({"Cs": [0.0]}, "Cs="), ({"scoring": "f1"}, "scoring="), ({"tolerance": -1}, "tolerance=")],
)
def test_rejects_parameters_out_of_range(songs, parameters, named):
    X, genres, artists = songs
    with pytest.raises(ValueError, match=named):
        MLRCV(**parameters).fit(X, genres, groups=artists)


def test_rejects_validation_without_relevant_songs(songs):
    X, _, artists = songs
    with pytest.raises(ValueError, match="no split was scored"):
        MLRCV(Cs=[1.0]).fit(X, artists, groups=artists)  # all songs of an artist are on one side


def test_unfitted_has_no_metric(songs):
    with pytest.raises(NotFittedError):
        MLRCV().transform(songs[0])


# --- samples of queries ------------------------------------------------------------------------


@pytest.mark.long
def test_sampled_queries_approach_optimum(songs):
    X, genres, _ = songs
    exact = MLR(C=10.0).fit(X, genres)
    sampled = MLR(C=10.0, n_queries=40, max_cuts=80, random_state=0).fit(X, genres)
    assert sampled.dual_bound_ <= exact.objective_ <= sampled.objective_ * (1 + exact.tol)
    # 5 % is the work of ten full cuts, with a margin
    assert sampled.objective_ <= 1.05 * exact.objective_
    again = MLR(C=10.0, n_queries=40, max_cuts=80, random_state=0).fit(X, genres)
    np.testing.assert_array_equal(sampled.metric_, again.metric_)
    other = MLR(C=10.0, n_queries=40, max_cuts=80, random_state=1).fit(X, genres)
    assert not np.array_equal(sampled.metric_, other.metric_)


@pytest.mark.parametrize("n_queries", [40, 70])
def test_planes_of_full_passes_bound_objective(songs, n_queries):
    X, genres, _ = songs
    oracle = Oracle(X, Relevance.from_labels(genres))
    passes = Passes(oracle, n_queries, X.shape[1] ** 2, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    Ws = [A.T @ A for A in rng.normal(size=(20, 5, X.shape[1]))]
    for W in Ws:
        passes.enter(oracle.cut(W, slots=passes.draw()))
    assert len(passes.planes) == 20 // -(-180 // n_queries)
    for W in Ws:
        assert passes.planes.slacks(W.ravel()).max() <= oracle.cut(W).slack * (1 + 1e-12)
    # with one metric throughout, a pass is a full cut
    same = Passes(oracle, n_queries, X.shape[1] ** 2, np.random.default_rng(0))
    while not len(same.planes):
        same.enter(oracle.cut(Ws[0], slots=same.draw()))
    np.testing.assert_allclose(same.planes.psi[0], oracle.cut(Ws[0]).dpsi.ravel(), atol=1e-12)
    assert same.planes.loss[0] == pytest.approx(oracle.cut(Ws[0]).loss)


def test_sampling_all_queries_matches_full_fit(songs):
    X, genres, _ = songs
    np.testing.assert_array_equal(MLR(n_queries=180).fit(X, genres).metric_, MLR().fit(X, genres).metric_)


def test_stopped_sampled_fit_has_exact_objective(songs):
    X, genres, _ = songs
    mlr = MLR(C=10.0, n_queries=40, random_state=0).fit(X, genres, callback=lambda step: step["cut"] >= 30)
    assert mlr.n_cuts_ <= 32
    assert mlr.objective_ < 10.0


@pytest.mark.parametrize("parameters", [{"n_queries": 0}, {"n_queries": 5, "solver": "admm"}])
def test_rejects_invalid_sample_sizes(songs, parameters):
    X, genres, _ = songs
    with pytest.raises(ValueError, match="n_queries="):
        MLR(**parameters).fit(X, genres)
