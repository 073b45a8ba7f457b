"""Choice of C on held-out artists."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from musicsim.evaluation import ArtistSplit, ranking_scores
from musicsim.library.processes.pools import LocalPool, map_of
from musicsim.library.processes.workers import Limits
from musicsim.metric import MLR, MLRCV
from musicsim.metric._oracles import Oracle
from musicsim.metric._stochastic import _Passes
from musicsim.relevance import Relevance

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def songs():
    """Thirty artists of four genres: the genre shows in one column, the artist in another, the rest is noise."""
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


def test_the_learned_metric_beats_the_plain_distance_on_other_artists(fitted):
    assert fitted.scores_.mean(axis=0).max() > fitted.untrained_ + 0.1


def test_the_best_mean_is_taken_and_fitted_on_all_songs(fitted, songs):
    X, genres, _ = songs
    assert fitted.Cs_.tolist() == [0.01, 1.0, 100.0]
    alone = MLR(tol=1e-2, C=fitted.C_).fit(X, genres)
    np.testing.assert_allclose(fitted.metric_, alone.metric_, rtol=1e-9)
    np.testing.assert_array_equal(fitted.transform(X), fitted.best_.transform(X))


def test_scores_are_those_of_separate_fits_on_artist_disjoint_splits(fitted, songs):
    X, genres, artists = songs
    for s, (train, validation) in enumerate(ArtistSplit(3, 0.3, random_state=0).split(X, groups=artists)):
        assert not set(artists[train]) & set(artists[validation])
        relevance = Relevance.from_labels(genres).restrict(validation, train)
        for c, C in enumerate(fitted.Cs_):
            mlr = MLR(tol=1e-4, C=C).fit(X[train], genres[train])
            score = ranking_scores(mlr.transform(X[validation]), mlr.transform(X[train]), relevance)["auc"]
            # two metrics within 1 % of the optimum rank nearly alike
            assert fitted.scores_[s, c] == pytest.approx(score, abs=0.02)


@pytest.mark.slow
def test_splits_that_are_learned_in_processes_give_the_same_numbers(fitted, songs):
    X, genres, artists = songs
    workers = map_of(LocalPool(2), Limits(seconds=300.0, memory_mb=4096))
    other = MLRCV(MLR(tol=1e-2), Cs=[100.0, 0.01, 1.0]).fit(X, genres, groups=artists, workers=workers)
    np.testing.assert_array_equal(other.scores_, fitted.scores_)
    np.testing.assert_array_equal(other.metric_, fitted.metric_)


def test_a_tolerance_prefers_a_smaller_c(songs):
    X, genres, artists = songs
    best = MLRCV(MLR(tol=1e-2), Cs=[10.0, 100.0]).fit(X, genres, groups=artists)
    lenient = clone(best).set_params(tolerance=1e6).fit(X, genres, groups=artists)
    assert lenient.C_ == 10.0 <= best.C_


def test_splits_may_be_given(songs):
    X, genres, _ = songs
    half = np.arange(180) % 2
    cv = MLRCV(MLR(tol=1e-2), Cs=[1.0], cv=[(np.flatnonzero(half == 0), np.flatnonzero(half == 1))], scoring="map")
    assert cv.fit(X, genres).scores_.shape == (1, 1)


def test_the_callback_is_told_of_every_fit_and_ends_it(songs):
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
def test_what_is_out_of_range_is_named(songs, parameters, named):
    X, genres, artists = songs
    with pytest.raises(ValueError, match=named):
        MLRCV(**parameters).fit(X, genres, groups=artists)


def test_validation_without_a_relevant_song_is_an_error(songs):
    X, _, artists = songs
    with pytest.raises(ValueError, match="no split was scored"):
        MLRCV(Cs=[1.0]).fit(X, artists, groups=artists)  # an artist's songs are all on one side


def test_before_the_fit_there_is_no_metric(songs):
    with pytest.raises(NotFittedError):
        MLRCV().transform(songs[0])


# --- samples of the queries ------------------------------------------------------------------------


def test_sampled_queries_come_near_the_optimum_and_give_the_exact_objective(songs):
    X, genres, _ = songs
    exact = MLR(C=10.0).fit(X, genres)
    sampled = MLR(C=10.0, n_queries=40, max_cuts=80, random_state=0).fit(X, genres)
    assert sampled.dual_bound_ <= exact.objective_ <= sampled.objective_ * (1 + exact.tol)
    # 5 % is what ten full cuts' work gives with room
    assert sampled.objective_ <= 1.05 * exact.objective_
    again = MLR(C=10.0, n_queries=40, max_cuts=80, random_state=0).fit(X, genres)
    np.testing.assert_array_equal(sampled.metric_, again.metric_)
    other = MLR(C=10.0, n_queries=40, max_cuts=80, random_state=1).fit(X, genres)
    assert not np.array_equal(sampled.metric_, other.metric_)


@pytest.mark.parametrize("n_queries", [40, 70])
def test_the_planes_of_whole_passes_bound_the_objective_of_all_queries(songs, n_queries):
    X, genres, _ = songs
    oracle = Oracle(X, Relevance.from_labels(genres))
    passes = _Passes(oracle, n_queries, X.shape[1] ** 2, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    Ws = [A.T @ A for A in rng.normal(size=(20, 5, X.shape[1]))]
    for W in Ws:
        passes.enter(oracle.cut(W, slots=passes.draw()))
    assert len(passes.planes) == 20 // -(-180 // n_queries)
    for W in Ws:
        assert passes.planes.slacks(W.ravel()).max() <= oracle.cut(W).slack * (1 + 1e-12)
    # at one metric throughout a pass is a full cut
    same = _Passes(oracle, n_queries, X.shape[1] ** 2, np.random.default_rng(0))
    while not len(same.planes):
        same.enter(oracle.cut(Ws[0], slots=same.draw()))
    np.testing.assert_allclose(same.planes.psi[0], oracle.cut(Ws[0]).dpsi.ravel(), atol=1e-12)
    assert same.planes.loss[0] == pytest.approx(oracle.cut(Ws[0]).loss)


def test_a_sample_of_all_queries_is_no_sample(songs):
    X, genres, _ = songs
    np.testing.assert_array_equal(MLR(n_queries=180).fit(X, genres).metric_, MLR().fit(X, genres).metric_)


def test_a_stopped_sampled_fit_gives_its_metric_with_the_exact_objective(songs):
    X, genres, _ = songs
    mlr = MLR(C=10.0, n_queries=40, random_state=0).fit(X, genres, callback=lambda step: step["cut"] >= 30)
    assert mlr.n_cuts_ <= 32
    assert mlr.objective_ < 10.0


@pytest.mark.parametrize("parameters", [{"n_queries": 0}, {"n_queries": 5, "solver": "admm"}])
def test_samples_that_cannot_be_drawn_are_named(songs, parameters):
    X, genres, _ = songs
    with pytest.raises(ValueError, match="n_queries="):
        MLR(**parameters).fit(X, genres)
