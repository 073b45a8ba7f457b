"""Tests that indexes behave like scikit-learn's base class, which they do not inherit."""

import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from musicsim.search import HammingIndex, MutualProximity
from musicsim.search.estimator import Estimator


class Theirs(BaseEstimator):
    def __init__(self, wide: int = 3, deep: float = 0.5) -> None:
        self.wide, self.deep = wide, deep

    def fit(self, X, y=None):
        self.fitted_ = True
        return self


class Ours(Estimator):
    __init__, fit = Theirs.__init__, Theirs.fit


@pytest.mark.parametrize("deep", [False, True])
def test_parameters_are_the_same(deep):
    assert Ours(7).get_params(deep) == Theirs(7).get_params(deep)
    assert list(Ours().get_params(deep)) == list(Theirs().get_params(deep))
    assert Ours().set_params(deep=2.0).get_params(deep) == {"deep": 2.0, "wide": 3}


def test_what_is_no_parameter_cannot_be_set():
    for estimator in (Ours(), Theirs()):
        with pytest.raises(ValueError, match="long"):
            estimator.set_params(long=1)


def test_scikit_learn_takes_it_for_one_of_its_own():
    assert get_tags(Ours()) == get_tags(Theirs())
    check_is_fitted(Ours().fit(None))
    with pytest.raises(NotFittedError):
        check_is_fitted(Ours())


@pytest.mark.parametrize("estimator", [HammingIndex("balls", n_bits=7), MutualProximity(50)], ids=repr)
def test_a_clone_has_the_parameters_and_shows_them(estimator):
    assert repr(clone(estimator)) == repr(estimator)
    assert "7" in repr(estimator) or "n_sample=50" in repr(estimator)
