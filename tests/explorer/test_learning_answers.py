"""Tests of a metric learned from answers with a known taste, evaluated on held-out answers."""

import numpy as np
import pytest

from musicsim import evaluation
from musicsim.errors import ModelError
from musicsim.evaluation import bootstrap_pairs
from musicsim.explorer.evaluation.quality import load_held_out
from musicsim.explorer.learning.from_answers import Answered, learn_from_answers, relevance_of, shares_in_order
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import CS
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_text import describe_split, figures, headline, report_of
from musicsim.explorer.requests.training import ANSWERS, LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.judgments import comparisons, question_key
from tests.learning import Watcher


def _odd(places):
    """Return the index of the song farthest from the other two."""
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    return int(apart.sum(axis=1).argmax())


def _answered(X, taste, n, seed, share_wrong=0.0):
    """Answer "which does not belong?" with a taste that depends on some columns only."""
    rng = np.random.default_rng(seed)
    found = Answered([], [])
    for _ in range(n):
        songs = rng.choice(len(X), 3, replace=False)
        odd = _odd(X[songs][:, taste])
        if rng.random() < share_wrong:
            odd = int(rng.integers(3))
        a, b = np.delete(songs, odd)
        found.comparisons.append(np.array([(a, b, a, songs[odd]), (a, b, b, songs[odd])]))
        found.questions.append(tuple(sorted(songs.tolist())))
    return found


def _quiet(*_):
    return False


@pytest.mark.long
@pytest.mark.parametrize(("loss", "Cs"), [("order", (1.0, 10.0, 100.0)), ("auc", (10.0,))])
def test_learned_taste_predicts_new_answers(loss, Cs):  # C is the name used in the field
    X = np.random.default_rng(0).standard_normal((60, 8)) * [1, 1, 3, 3, 3, 3, 3, 3]
    answered, fresh = _answered(X, [0, 1], 150, 1, 0.1), _answered(X, [0, 1], 300, 2)
    judged = learn_from_answers(X, answered, Cs=Cs, loss=loss, on_progress=_quiet)
    before, after = shares_in_order(X, fresh).mean(), shares_in_order(X @ judged.L.T, fresh).mean()
    assert after > before + 0.15
    assert judged.lead.low > 0
    # A tenth of the held-out answers are guesses. Otherwise they are predicted as well as fresh ones, up to chance.
    assert judged.lead.after == pytest.approx(after - 0.05, abs=0.07)
    assert judged.untrained == pytest.approx(shares_in_order(X, answered).mean())


def test_random_answers_score_at_chance():
    X = np.random.default_rng(3).standard_normal((60, 8))
    judged = learn_from_answers(X, _answered(X, [0], 120, 4, share_wrong=1.0), Cs=(100.0,), on_progress=_quiet)
    # 120 answers of two comparisons each: the standard error is .04 around .5, the share that guessing gets right
    assert judged.lead.after == pytest.approx(0.5, abs=0.12)


def test_interval_is_wider_than_for_independent_answers(monkeypatch):
    """Five folds share most of their answers: Nadeau and Bengio's factor of the variance is 1 + 5 / 4."""
    found = []

    def note(*given):
        found.append(bootstrap_pairs(*given))
        return found[-1]

    monkeypatch.setattr(evaluation, "bootstrap_pairs", note)
    X = np.random.default_rng(0).standard_normal((30, 3))
    judged = learn_from_answers(X, _answered(X, [0], 40, 1, 0.2), Cs=(10.0,), n_shuffles=1, on_progress=_quiet)
    lead, ((mean, low, high), *_, above) = judged.lead, found  # comparisons, whole questions, shuffled answers
    assert (lead.low - mean, lead.high - mean) == pytest.approx((1.5 * (low - mean), 1.5 * (high - mean)))
    assert (lead.above_low - above[0]) == pytest.approx(1.5 * (above[1] - above[0]))


def test_repeated_question_stays_in_one_fold():
    answered = Answered([np.zeros((1, 4), np.int64)] * 12, [("odd", i % 4) for i in range(12)])
    for rest, judged in answered.folds(3, 0):
        assert {answered.questions[i] for i in rest}.isdisjoint(answered.questions[i] for i in judged)
        assert sorted([*rest.tolist(), *judged.tolist()]) == list(range(12))
    assert answered.some(np.array([0])).folds(3, 0) == []


def test_question_key_ignores_display_order():
    assert question_key("odd", (3, 1, 2)) == question_key("odd", [1, 2, 3]) != question_key("odd", (1, 2, 4))
    assert question_key("like", (1, 3, 2)) == question_key("like", (1, 2, 3)) != question_key("like", (2, 1, 3))
    assert question_key("like", (1, 2, 3)) != question_key("odd", (1, 2, 3))


def test_progress_points_match_untrained_verdict():
    X = np.random.default_rng(6).standard_normal((30, 4))
    points = []
    judged = learn_from_answers(
        X, _answered(X, [0], 20, 7), Cs=(10.0,), on_progress=lambda _, p: points.append(p) or False
    )
    assert {point["untrained"] for point in points} == {judged.untrained}
    assert "quality" not in points[0]
    assert "quality" in points[-1], "answers have been held out by then"


def test_votes_determine_relevance():
    asked = np.array([(0, 1, 0, 2), (0, 1, 0, 3), (0, 2, 0, 1), (0, 3, 0, 1), (2, 1, 2, 0), (4, 5, 6, 7)])
    relevance = relevance_of(asked, 8)
    assert relevance.relevant(0).tolist() == []
    assert relevance.irrelevant(0).tolist() == []
    assert relevance.relevant(2).tolist() == [1]
    assert relevance.irrelevant(2).tolist() == [0]
    assert not any(len(relevance.relevant(i)) for i in (4, 5, 6, 7))


def test_equal_distances_count_half():
    answered = Answered([np.array([(0, 1, 0, 1)])], [("q",)])
    assert shares_in_order(np.zeros((2, 1)), answered).tolist() == [0.5]


def _answer(library, n, seed=0, listener="Ann"):
    """Answer with a taste that depends on the last principal axis only."""
    snapshot = take_snapshot(library, library.models.native().id)
    rng, taste = np.random.default_rng(seed), [3, 4]
    for _ in range(n):
        songs = rng.choice(len(snapshot.songs_at()), 3, replace=False)
        odd = _odd(np.asarray(snapshot.X)[songs][:, taste])
        library.judgments.add(listener, "odd", [snapshot.songs_at([i])[0].id for i in songs], odd)
    return snapshot


@pytest.mark.long
def test_training_from_answers_reports_quality(taught):
    snapshot = _answer(taught, 60)
    watcher = Watcher()
    settings = LearningSettings(supervision=ANSWERS, loss="order")
    model_id = learn(taught, settings, "my ears", watcher)
    report = load_report(taught.models.path(model_id))
    agreed = report["answers"].pop("agreed")
    plain = shares_in_order(np.asarray(snapshot.X, np.float64), Answered.collect(snapshot))
    assert agreed["before"] == pytest.approx((plain == 1).mean())
    assert agreed["after"] == pytest.approx(agreed["before"] + agreed["mean"])
    assert report["answers"] == {
        "n": 60, "questions": report["answers"]["questions"], "comparisons": 120,
        "songs": len({i for a in taught.judgments.answers() for i in a.song_ids}),
    }  # fmt: skip
    assert report["C"] in CS
    lead = report["leads"]["order"]
    assert lead["after"] > lead["before"]
    answered = Answered.collect(snapshot)
    assert lead["before"] == pytest.approx(shares_in_order(np.asarray(snapshot.X, np.float64), answered).mean())
    # The saved metric was learned from all answers, so it agrees with more of them than the plain distance.
    learned = take_snapshot(taught, model_id)
    assert shares_in_order(learned.X.astype(np.float64), Answered.collect(learned)).mean() > lead["before"]
    record = taught.models.get(model_id)
    said = report_of(taught, record)
    assert "60 answers" in headline(said)[1]
    assert "comparisons in order" in headline(said)[1]
    assert figures(said)[0]["measure"] == "comparisons in order"
    assert describe_split(said).startswith("Learned from 120 comparisons")
    assert load_held_out(taught, record) is None, "answers were held out, not artists"
    assert all({"C", "cut", "objective", "gap", "seconds"} <= point.keys() for point in watcher.points)


@pytest.mark.long
def test_answers_give_relevance_for_ranking_losses(taught):
    snapshot = _answer(taught, 40)
    model_id = learn(taught, LearningSettings(supervision=ANSWERS, loss="map", C=100.0), "ranked", Watcher())
    assert "order" in load_report(taught.models.path(model_id))["leads"]
    relevance = Supervision(snapshot, ANSWERS).relevance()
    answer = taught.judgments.answers()[0]
    near = {snapshot.rows_of([i])[0] for i in comparisons(answer)[0][:2]}
    assert any(len(relevance.relevant(i)) for i in near)


@pytest.mark.long
def test_training_can_use_one_listener(taught):
    _answer(taught, 20, listener="Ann")
    _answer(taught, 10, seed=1, listener="Bob")
    settings = LearningSettings(supervision=ANSWERS, loss="order", C=10.0, listener="Bob")
    model_id = learn(taught, settings, "Bob's", Watcher())
    assert load_report(taught.models.path(model_id))["answers"]["n"] == 10


@pytest.mark.long
def test_early_stop_is_reported(taught):
    _answer(taught, 30)
    model_id = learn(taught, LearningSettings(supervision=ANSWERS, loss="order"), "early", Watcher(enough_after=1))
    assert load_report(taught.models.path(model_id))["stopped_early"]


BEGINS = {
    "fold": "holding out a fifth of the answers, 1",
    "later fold": "holding out a fifth of the answers, 3",
    "choosing": "choosing C",
    "all": "learning from all",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("loss", "has_blocks"), [("order", False), ("auc", False), ("map", False), ("order", True), ("auc", True)]
)
def test_early_stop_prefers_completed_fits(loss, has_blocks):
    """A run that is stopped for good keeps the best metric that was trained to the end, if there is one."""
    X = np.random.default_rng(0).standard_normal((30, 4)) * [1, 1, 2, 2]
    answered, Cs = _answered(X, [0, 1], 24, 1), (1.0, 5.0)
    of_blocks = [slice(0, 2), slice(2, 4)] if has_blocks else ()
    stopped = {}
    for name, beginning in BEGINS.items():
        heard = []

        def told(message, _, beginning=beginning, heard=heard):
            if heard or message.startswith(beginning):
                heard.append(message)
            return bool(heard)

        judged = learn_from_answers(X, answered, Cs=Cs, loss=loss, blocks=of_blocks, on_progress=told)
        stopped[name] = judged
        assert judged.L.any()
        assert judged.C in {entry["C"] for entry in judged.path}
        if name != "fold":  # nothing is complete yet
            assert len(heard) == 1, "no other fit is begun"
            assert [entry["C"] for entry in judged.path] == list(Cs)
            assert shares_in_order(X @ judged.L.T, answered).mean() > judged.untrained + 0.1
    np.testing.assert_array_equal(stopped["choosing"].L, stopped["all"].L)
    whole = learn_from_answers(X, answered, Cs=Cs, loss=loss, blocks=of_blocks, on_progress=_quiet)
    assert stopped["choosing"].lead == stopped["all"].lead == whole.lead, "every part has been judged"
    assert stopped["fold"].lead is None
    assert stopped["later fold"].lead is not None


@pytest.mark.long
@pytest.mark.parametrize("loss", ["order", "auc"])
def test_unfinished_fold_is_not_evaluated(loss):
    """If training stops within a held-out part, the shares are exactly those of the parts before it."""
    X = np.random.default_rng(0).standard_normal((30, 4))
    answered = _answered(X, [0, 1], 24, 1)
    held_out = {}
    for n_fold in (2, 3, 4):
        began = []

        def told(message, point, n_fold=n_fold, began=began):
            if message.startswith(f"holding out a fifth of the answers, {n_fold}"):
                began.append(point["quality"])
            return len(began) > 1  # not in the first step of the part

        judged = learn_from_answers(X, answered, Cs=(10.0,), loss=loss, on_progress=told)
        held_out[n_fold] = judged.lead.after
        assert judged.lead.after == pytest.approx(began[0])
    assert len(set(held_out.values())) > 1


def test_duplicates_count_as_one_song(tiny_library):
    """A question about a duplicate is in the same part as the one about its song. An answer with both is ignored."""
    first, copy, b, c = (song.id for song in tiny_library.songs()[:4])
    tiny_library.duplicates.enter([SamePair(first, copy, 1.0, 0.0)], [])
    for songs in ((first, b, c), (copy, b, c), (first, b, copy), (b, copy, first)):
        tiny_library.judgments.add("Ann", "odd", songs, 0)
        tiny_library.judgments.add("Ann", "like", songs, 1)
    answered = Answered.collect(take_snapshot(tiny_library))
    assert len(answered) == 4
    assert len(set(answered.questions)) == 2, "one of each form"
    assert answered.folds(2, 0)[0][0].tolist() in ([0, 2], [1, 3])


def test_rejects_too_few_answers(taught):
    _answer(taught, 3)
    with pytest.raises(ModelError, match="at least 6 answers, but there are only 3"):
        learn(taught, LearningSettings(supervision=ANSWERS, loss="order"), "x", Watcher())
    taught.judgments.forget_listener("Ann")
    with pytest.raises(ModelError, match="nobody has compared"):
        Supervision(take_snapshot(taught, taught.models.native().id), ANSWERS)


def test_only_answers_allow_order_loss():
    with pytest.raises(ValueError, match="order"):
        LearningSettings(supervision="plays", loss="order")
