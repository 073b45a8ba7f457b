"""Tests of old names: they still work, and say how they are called now."""

import numpy as np
import pytest

from musicsim import audio, evaluation
from musicsim.relevance import Relevance


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [
        (audio, "analyse_sound", "analyze_sound"),
        (audio, "HEARD", "DESCRIPTORS"),
        (evaluation, "nearest_neighbours", "nearest_neighbors"),
    ],
)
def test_old_names_give_the_new_ones(package, old, new):
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        assert getattr(package, old) is getattr(package, new)
    assert new in dir(package)
    assert old not in dir(package)
    with pytest.raises(AttributeError, match="colour"):
        package.colour  # noqa: B018


def test_old_method_returns_the_same():
    relevance = Relevance.from_labels([0, 0, 1])
    with pytest.warns(DeprecationWarning, match="judgements is called judgments now"):
        np.testing.assert_array_equal(relevance.judgements([0, 2]), relevance.judgments([0, 2]))
