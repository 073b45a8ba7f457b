"""Tests that the estimators work with scikit-learn's tools."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from musicsim.evaluation import query_scores
from musicsim.metric import MLR
from musicsim.relevance import Relevance

pytestmark = pytest.mark.filterwarnings("ignore")  # small sets of noise


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
