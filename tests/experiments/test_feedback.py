"""The experiment on feedback: what counts as an answer, and a run on made-up genres."""

import numpy as np
import pytest

from experiments import feedback
from musicsim.metric import feedback_metric
from tests.shared import needs_data


def made_up(n=240, seed=0):
    """Genres lie apart in two of six dimensions."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    X = rng.normal(size=(n, 6))
    X[:, 0] += 2.0 * (y % 2)
    X[:, 1] += 2.0 * (y // 2)
    return X, y


def test_query_and_shown_songs_do_not_count():
    X, y = made_up()
    seen = []

    class Watched:
        def __init__(self, inner):
            self.inner = inner

        def distances(self, rows):
            seen.append(len(rows))
            return self.inner.distances(rows)

    def answer(*marks, **how):
        return Watched(feedback_metric(*marks, **how))

    found = feedback.precision(X, y, 7, 3, answer, np.random.default_rng(0))
    assert set(found) == set(feedback.WAYS)
    assert seen == [240] + [240 - 1 - feedback.SHOWN] * len(feedback.WAYS)
    nearest = np.argsort(np.linalg.norm(X - X[7], axis=1))[1 + feedback.SHOWN :][: feedback.LOOKED_AT]
    assert found["before"] == pytest.approx(np.mean(y[nearest] == y[7]))


@needs_data("gtzan")
def test_real_songs_have_ten_genres():
    X, y = feedback.load()
    assert X.shape == (1000, 57)
    assert np.bincount(y).tolist() == [100] * 10
    np.testing.assert_allclose(X.std(axis=0), 1.0)
