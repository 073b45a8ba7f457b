"""Tests of dialects: one walk per category, regularized to the global one."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from musicsim.playlist import Dialects, PlaylistModel, build_edges


def two_languages(seed, n_lists=60, length=8):
    """Return lists within a tag, and lists within an artist, on a grid of both."""
    graph = build_edges(100, tags=[[f"t{i % 10}"] for i in range(100)], artists=[f"a{i // 10}" for i in range(100)])
    weights = {"by tag": "tag", "by artist": "artist"}
    playlists, categories = [], []
    rng = np.random.default_rng(seed)
    for category, family in weights.items():
        w = np.array([1.0 if name.startswith(family) else 0.05 for name in graph.names])
        hidden = PlaylistModel(graph, weights=w)
        playlists += [hidden.generate(length, random_state=rng, repeat=True).songs for _ in range(n_lists)]
        categories += [category] * n_lists
    return graph, playlists, categories


def test_dialects_beat_the_global_walk_where_languages_differ():
    graph, playlists, categories = two_languages(0)
    _, test, test_categories = two_languages(1)
    dialects = Dialects(graph).fit(playlists, categories)
    gains = dialects.gains(test, test_categories)
    assert set(gains) == {"by tag", "by artist"}
    for category, gain in gains.items():
        own = [p for p, c in zip(test, test_categories, strict=True) if c == category]
        assert gain.n_playlists == 60
        assert gain.of_dialect > gain.of_global + 0.05
        assert gain.of_dialect == pytest.approx(dialects.model(category).relative_gain(own))
        assert gain.of_global == pytest.approx(dialects.global_.relative_gain(own))


def test_without_strength_a_dialect_is_the_walk_of_its_own_lists():
    graph, playlists, categories = two_languages(2, n_lists=20)
    dialects = Dialects(graph).fit(playlists, categories)
    alone = PlaylistModel(graph).fit(playlists[:20])
    np.testing.assert_allclose(dialects.models_["by tag"].weights_, alone.weights_, atol=1e-12)


def test_strength_pulls_a_dialect_to_the_global_walk():
    graph, playlists, categories = two_languages(3, n_lists=10)

    def distance(strength):
        dialects = Dialects(graph, strength=strength).fit(playlists, categories)
        return np.abs(dialects.models_["by tag"].weights_ - dialects.global_.weights_).sum()

    apart = [distance(s) for s in (0.0, 30.0, 3000.0)]
    assert apart[0] > apart[1] > apart[2]
    # 3,000 transitions of the global walk against 80 of its own
    assert apart[2] < 0.1


def test_small_and_nameless_categories_speak_the_global_language():
    graph, playlists, categories = two_languages(4, n_lists=6)
    categories = [None if c == "by artist" else c for c in categories]
    dialects = Dialects(graph, min_playlists=7).fit(playlists, categories)
    assert dialects.models_ == {}
    assert dialects.model("by tag") is dialects.model(None) is dialects.global_
    assert dialects.gains(playlists, categories) == {}


def test_categories_come_by_size():
    graph, playlists, _ = two_languages(5, n_lists=5)
    dialects = Dialects(graph).fit(playlists, ["b", "a", "c", "c", "c", "a", "b", None, "", "d"])
    assert list(dialects.n_playlists_.items()) == [("c", 3), ("a", 2), ("b", 2), ("d", 1)]


def test_requests_that_make_no_sense_are_named():
    graph, playlists, categories = two_languages(6, n_lists=3)
    with pytest.raises(ValueError, match="categories has 1 entries, but there are 6 playlists"):
        Dialects(graph).fit(playlists, ["x"])
    with pytest.raises(ValueError, match="strength=-1"):
        Dialects(graph, strength=-1).fit(playlists, categories)
    with pytest.raises(NotFittedError):
        Dialects(graph).model("x")
    assert clone(Dialects(graph, strength=2.0)).strength == 2.0
