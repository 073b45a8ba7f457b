"""Tests that the estimators meet scikit-learn's contract and work with its tools."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from musicsim.evaluation import query_scores
from musicsim.hashing import RandomProjectionHash, RankHash, SpectralHash
from musicsim.metric import GMML, MLR, MLRCV, WCCN, LGMMLByExample
from musicsim.relevance import Relevance

pytestmark = pytest.mark.filterwarnings("ignore")  # the checks fit small sets of noise


@parametrize_with_checks([MLR(), GMML(), WCCN(), LGMMLByExample(), RandomProjectionHash()])
def test_meets_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [MLRCV(MLR(tol=0.1), Cs=[1], cv=1), SpectralHash(), RankHash(8, ranknet_steps=5, lambdarank_steps=5)]
)
def test_other_estimators_meet_contract_of_scikit_learn(estimator, check):
    check(estimator)


def score_by_map(pipeline, X, y):
    Y = pipeline.transform(X)
    return np.nanmean(query_scores(Y, Y, Relevance.from_labels(y))["map"])


def test_grid_search_over_pipeline_equals_separate_fits():
    X, y = load_wine(return_X_y=True)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    pipeline = make_pipeline(StandardScaler(), MLR(tol=0.1))
    search = GridSearchCV(pipeline, {"mlr__C": [1, 100]}, scoring=score_by_map, cv=folds).fit(X, y)
    for i, C in enumerate([1, 100]):
        for fold, (train, test) in enumerate(folds.split(X, y)):
            fitted = clone(pipeline).set_params(mlr__C=C).fit(X[train], y[train])
            assert search.cv_results_[f"split{fold}_test_score"][i] == score_by_map(fitted, X[test], y[test])
    restored = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(restored.transform(X), search.transform(X))
