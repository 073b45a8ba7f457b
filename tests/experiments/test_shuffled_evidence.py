"""The experiment on shuffled evidence: gains exceed those of shuffled evidence only if the evidence says something."""

import numpy as np
import pytest
from scipy import sparse

from experiments import listeners
from experiments.audio import FULL
from experiments.listeners import EUCLID, LOGISTIC
from experiments.shuffled_evidence import (
    answers_about_artists,
    answers_of,
    gains_of,
    join_folds,
    join_splits,
    score_popularity,
    shuffle_listeners,
)
from experiments.support.audio import (
    GMML_ONE,
    VQ,
    Split,
    lead_above_shuffled,
    mean_distances,
    native_distances,
    restrict_to_parts,
)
from experiments.support.descriptors import Collection
from experiments.support.orders import everything, questions_held_out
from experiments.support.surveys import Survey, comparisons_of
from musicsim.evaluation.ranking import distance_scores
from musicsim.explorer.learning.shuffles import trade_entries
from musicsim.explorer.learning.verdict import Lead
from musicsim.relevance import Relevance

# --- plays --------------------------------------------------------------------------------------------------


def plays_of(X, strength, rng):
    """Two hundred listeners of eight songs each, some more popular; with strength, those near a place in X[:, 0]."""
    popular = 1 / rng.permutation(np.arange(1, len(X) + 1))
    heard = np.zeros((200, len(X)))
    for row in heard:
        weights = popular * np.exp(-strength * (X[:, 0] - rng.normal()) ** 2)
        row[rng.choice(len(X), 8, replace=False, p=weights / weights.sum())] = 1
    return sparse.csr_array(heard)


@pytest.mark.parametrize("strength", [0.0, 3.0])
def test_learned_lead_exceeds_lead_by_shuffled_plays_only_if_plays_follow_sound(strength):
    rng = np.random.default_rng(5)
    n = 120
    X = rng.normal(size=(n, 8))
    parts = [np.sort(part) for part in np.split(rng.permutation(n), [60, 90])]
    table = plays_of(X, strength, rng)
    copies = [table, *(trade_entries(table, number) for number in range(3))]
    for copy in copies[1:]:
        assert (copy.toarray() != table.toarray()).any()
        np.testing.assert_array_equal(copy.sum(axis=0), table.sum(axis=0))  # listeners of each artist
        np.testing.assert_array_equal(copy.sum(axis=1), table.sum(axis=1))  # artists of each listener
    artists = np.arange(n)
    plays = [Relevance.from_plays(copy, 5, 1, groups=artists, candidates=parts[0]) for copy in copies]
    split = Split(0, *parts, {5: restrict_to_parts(plays[0], *parts)}, {5: tuple(plays)})
    lead = lead_above_shuffled(VQ, X, artists, split, 5, GMML_ONE, FULL)
    spaces = native_distances(VQ, X, split.train), mean_distances(X, split, 5, GMML_ONE)[0]
    scores = [distance_scores(D[split.test], split.relevance[5][2])["auc"] for D in spaces]
    assert (lead.before, lead.after) == pytest.approx(tuple(map(np.nanmean, scores)), rel=1e-6)
    assert (lead.above_low > 0.05) if strength else (lead.above_low < 0 < lead.above_high)


def test_shuffled_listeners_keep_popularity_of_artists(rng):
    tags = (rng.random((30, 50)) < np.linspace(0.02, 0.6, 30)[:, None]).astype(float)
    artists = Collection(rng.normal(size=(30, 3)), None, np.arange(30), tags, inside=True)
    shuffled = shuffle_listeners(artists, rng)
    assert (shuffled.tags != tags).any()
    assert set(np.unique(shuffled.tags)) == {0.0, 1.0}
    for axis in (0, 1):
        np.testing.assert_array_equal(shuffled.tags.sum(axis=axis), tags.sum(axis=axis))
    np.testing.assert_array_equal(shuffled.X, artists.X)


def test_popularity_ranks_artists_with_more_listeners_first():
    relevance = Relevance.from_lists([[0, 1], [3]], 4, outside=True)
    # the first query gets its two songs first; before the song of the second are two of three others
    assert score_popularity(np.array([9.0, 7.0, 1.0, 5.0]), relevance) == pytest.approx((1 + 1 / 3) / 2)


def test_interval_over_splits_is_as_wide_as_that_of_one_split():
    leads = [Lead(0.5, 0.7, 0.2, 0.1, 0.3, 0.05, 0.0, 0.3), Lead(0.6, 0.9, 0.3, 0.1, 0.5, 0.15, 0.1, 0.2)]
    row = join_splits(leads)
    assert row == pytest.approx(
        {
            "before": 0.55, "lead": 0.25, "lead from": 0.1, "lead to": 0.4, "shuffled": 0.1, "above": 0.15,
            "above from": 0.05, "above to": 0.25, "splits": 2,
        }
    )  # fmt: skip


# --- answers ------------------------------------------------------------------------------------------------


def odd_by(Z, songs):
    """The song of each three that is outside their nearest pair."""
    others = [(1, 2), (0, 2), (0, 1)]
    D = np.stack([np.square(Z[songs[:, a]] - Z[songs[:, b]]).sum(axis=1) for a, b in others], axis=1)
    return D.argmin(axis=1)


@pytest.mark.parametrize("is_taste", [True, False])
def test_learned_lead_exceeds_lead_on_flipped_answers_only_if_answers_say_something(is_taste):
    """Listeners hear two of the columns, or answer at random."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 20))
    songs = np.stack([rng.choice(60, 3, replace=False) for _ in range(300)])
    survey = Survey(X, songs, odd_by(X[:, :2], songs) if is_taste else rng.integers(3, size=300))
    splits = questions_held_out(everything(60, 300), survey.groups, 5, 0)

    def build(asked):
        return listeners.build_song_methods(X, asked, listeners.SHORT)

    gains = []
    for nth, split in enumerate(splits):
        inner = questions_held_out(split, survey.groups, 3, nth)[:1]
        rng = np.random.default_rng(nth)
        gains.append(gains_of((LOGISTIC,), build, answers_of(survey), split, inner, 5, rng)[LOGISTIC])
    row = join_folds(gains, 5)
    assert next(build(None)).name == EUCLID
    assert abs(row["shuffled"]) < 0.1
    assert (row["above from"] > 0.1) if is_taste else (row["above from"] < 0 < row["above to"])


def test_folds_are_joined_as_in_hand_computed_example():
    row = join_folds([(0.5, 0.2, 0.1), (0.6, 0.0, 0.0), (0.7, 0.2, 0.2), (0.6, 0.2, 0.1)], 4)
    lead, above = np.array([0.2, 0.0, 0.2, 0.2]), np.array([0.1, 0.0, 0.0, 0.1])
    # 3.182 is the 97.5% quantile of t with three degrees of freedom; each fold's test answers are a third of training
    halves = {name: 3.182446 * v.std(ddof=1) * np.sqrt(1 / 4 + 1 / 3) for name, v in (("lead", lead), ("above", above))}
    assert row == pytest.approx(
        {
            "before": 0.6, "shuffled": 0.1, "lead": 0.15, "lead from": 0.15 - halves["lead"],
            "lead to": 0.15 + halves["lead"], "above": 0.05, "above from": 0.05 - halves["above"],
            "above to": 0.05 + halves["above"], "splits": 4,
        }
    )  # fmt: skip


def test_flipped_answers_keep_questions_and_their_songs(rng):
    songs = np.stack([rng.choice(12, 3, replace=False) for _ in range(40)])
    survey = Survey(rng.normal(size=(12, 4)), np.concatenate([songs, songs]), rng.integers(3, size=80))
    answered = answers_of(survey)
    for nth, compared in enumerate(answered.comparisons):
        np.testing.assert_array_equal(compared, comparisons_of(survey.songs[[nth]], survey.odd[[nth]]))
    flipped = answered.flip(0)
    assert flipped.questions == answered.questions
    is_flipped = {}
    for one, other, question in zip(answered.comparisons, flipped.comparisons, answered.questions, strict=True):
        assert (other == one).all() or (other == one[:, [2, 3, 0, 1]]).all()
        # two answers to a question stay together
        assert is_flipped.setdefault(question, (other != one).any()) == (other != one).any()
    assert 0.2 < np.mean(list(is_flipped.values())) < 0.8


def test_both_answers_to_a_question_about_artists_are_flipped_together():
    comparisons = np.array([[0, 1, 0, 2], [0, 2, 0, 1], [3, 1, 3, 2]])
    answered = answers_about_artists(comparisons)
    np.testing.assert_array_equal(answered.all(), comparisons)
    assert answered.questions[0] == answered.questions[1] != answered.questions[2]
