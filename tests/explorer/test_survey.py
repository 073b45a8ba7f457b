"""Tests of the choice of the next question, and of the value of answers."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binomtest, chisquare

from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.explorer.survey import questions as survey
from musicsim.explorer.survey.questions import Question, is_predicted, next_question, summarize_answers
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.judgments import Judgment, comparisons

FORMS = ("odd", "like")


@dataclass
class Songs:
    """The part of a snapshot that the survey reads, for given vectors. Song ids are rows plus 100."""

    X: np.ndarray

    library = SimpleNamespace(name="made up")

    @property
    def n_indexed(self):
        return len(self.X)

    @property
    def row_ids(self):
        return np.arange(len(self.X)) + 100

    def rows_of(self, ids):
        rows = np.asarray(list(ids), dtype=np.int64) - 100
        return np.where((rows >= 0) & (rows < len(self.X)), rows, -1)

    def vectors_at(self, rows):
        return self.X[np.asarray(rows, dtype=np.int64)]


@pytest.fixture
def songs(rng):
    return Songs(rng.normal(size=(40, 5)).astype(np.float32))


def answer(question, chosen, listener="Ann"):
    return Judgment(0, 0.0, listener, question.form, question.song_ids, chosen, {"is_random": question.is_random})


def key(question):
    first, *rest = question.song_ids
    form = question.form if isinstance(question, Question) else question.kind
    return (first, frozenset(rest)) if form == "like" else frozenset(question.song_ids)


def only(kind):
    """Return shares that make every question of one kind."""
    return tuple(float(k == kind) for k in ("telling", "random", "repeat"))


# --- the next question ----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("n_songs", [3, 4])
@pytest.mark.parametrize("form", FORMS)
def test_questions_are_new_unless_marked_as_repeats(songs, rng, form, n_songs):
    answers, asked = [], set()
    for _ in range(150):
        question = next_question(songs, answers, listener="Ann", form=form, n_songs=n_songs, rng=rng)
        assert question.form == form
        assert len(set(question.song_ids)) == len(question.song_ids) == n_songs
        assert question.is_repeat == (key(question) in asked)
        assert not (question.is_repeat and question.is_random)
        asked.add(key(question))
        answers.append(answer(question, int(rng.integers(1, n_songs))))


def test_same_seed_gives_same_question(songs):
    ask = lambda seed: next_question(songs, [], listener="Ann", rng=np.random.default_rng(seed))  # noqa: E731
    assert ask(3) == ask(3)
    assert len({ask(seed) for seed in range(20)}) > 10


@pytest.mark.long
def test_shares_of_random_and_repeated_questions(songs, rng):
    """1,000 questions, with a tolerance of four standard deviations."""
    answers = [
        answer(next_question(songs, [], listener="Ann", rng=np.random.default_rng(seed)), 0) for seed in range(30)
    ]
    asked = [next_question(songs, answers, listener="Ann", rng=rng) for _ in range(1000)]
    for n, share in ((sum(q.is_random for q in asked), 0.2), (sum(q.is_repeat for q in asked), 0.1)):
        assert abs(n - 1000 * share) < 4 * (1000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("form", FORMS)
def test_random_questions_are_uniform(rng, form, monkeypatch):
    """Covers every question about five songs in every order. With this seed, p > 1e-4."""
    monkeypatch.setattr(survey, "SHARES", only("random"))
    few = Songs(rng.normal(size=(5, 2)))
    asked = [next_question(few, [], listener="Ann", form=form, rng=rng) for _ in range(3000)]
    assert all(q.is_random for q in asked)
    counts = Counter(q.song_ids for q in asked)
    assert chisquare([counts[order] for order in permutations(few.row_ids.tolist(), 3)]).pvalue > 1e-4


def test_random_questions_of_others_are_reused(songs, rng, monkeypatch):
    """About half of the random questions repeat those of others, as long as some are new to the listener."""
    monkeypatch.setattr(survey, "SHARES", only("random"))
    by_chance = [Question("odd", ids, True, False) for ids in ((100, 101, 102), (103, 104, 105))]
    chosen = Question("odd", (106, 107, 108), False, False)
    answers = [answer(q, 0, "Bob") for q in (*by_chance, chosen)]
    asked = [next_question(songs, answers, listener="Ann", rng=rng) for _ in range(400)]
    counts = Counter(key(q) for q in asked)
    n_shared = sum(counts[key(q)] for q in by_chance)
    assert abs(n_shared - 200) < 4 * 10
    assert min(counts[key(q)] for q in by_chance) > 50
    assert counts[key(chosen)] < 5, "what a model chose is no draw by chance"
    assert all(q.is_random for q in asked)
    answers += [answer(q, 0, "Ann") for q in by_chance]
    asked = [next_question(songs, answers, listener="Ann", rng=rng) for _ in range(50)]
    assert not {key(q) for q in asked} & {key(q) for q in by_chance}


@pytest.mark.parametrize("form", FORMS)
def test_repeats_reorder_songs_of_sure_answers(songs, rng, form, monkeypatch):
    monkeypatch.setattr(survey, "SHARES", only("repeat"))
    ids = [(100 + i, 110 + i, 120 + i, 130 + i) for i in range(10)]
    answers = [answer(Question(form, songs_, False, False), 1) for songs_ in ids]
    answers[0] = replace(answers[0], chosen=None)
    answers.insert(3, replace(answers[2], song_ids=(ids[2][0], *ids[2][:0:-1])))  # already asked twice
    ask = lambda who: next_question(songs, answers, listener=who, form=form, n_songs=4, rng=rng)  # noqa: E731
    asked = [ask(" Ann ") for _ in range(200)]
    assert all(q.is_repeat and not q.is_random for q in asked)
    assert {key(q) for q in asked} == {key(answers[i]) for i in (1, 4, 5)}, "sure, once, not among the last five"
    if form == "like":
        assert {q.song_ids[0] for q in asked} == {ids[i][0] for i in (1, 3, 4)}
    assert len({q.song_ids for q in asked}) > 3 * 5, "in many orders"
    assert not any(ask("Bob").is_repeat for _ in range(20))


@pytest.mark.parametrize("form", FORMS)
def test_exhausted_questions_are_repeated(rng, form):
    few, answers = Songs(rng.normal(size=(4, 2))), []
    n_questions = {"odd": 4, "like": 12}[form]
    asked = Counter()
    for _ in range(3 * n_questions):
        question = next_question(few, answers, listener="Ann", form=form, rng=rng)
        assert question.is_repeat == (key(question) in asked)
        asked[key(question)] += 1
        answers.append(answer(question, None))
    assert len(asked) == n_questions


@pytest.mark.long
def test_songs_without_vector_are_never_used(rng):
    X = rng.normal(size=(30, 3))
    X[::2, 1] = np.nan
    X[7, 2] = np.inf
    usable = {100 + row for row in range(1, 30, 2)} - {107}
    answers = [answer(Question("odd", (100, 101, 103), True, False), 0, who) for who in ("Ann", "Bob")]
    for _ in range(200):
        question = next_question(Songs(X), answers, listener="Ann", rng=rng)
        assert set(question.song_ids) <= usable
        answers.append(answer(question, 0))


def test_rejects_too_few_songs(rng, store):
    nan = np.full((5, 2), np.nan)
    two = np.vstack([nan, np.zeros((2, 2))])
    for few in (Songs(np.zeros((0, 0))), Songs(nan), Songs(two), take_snapshot(store)):
        with pytest.raises(ModelError, match="fewer than 3 songs can be compared"):
            next_question(few, [], listener="Ann", rng=rng)
    with pytest.raises(ModelError, match="fewer than 4"):
        next_question(Songs(np.zeros((3, 2))), [], listener="Ann", n_songs=4, rng=rng)
    assert set(next_question(Songs(np.zeros((3, 2))), [], listener="Ann", rng=rng).song_ids) == {100, 101, 102}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"form": "even"}, "form='even'"),
        ({"n_songs": 2}, "n_songs=2 must be 3 or 4"),
        ({"n_songs": 5}, "n_songs=5"),
        ({"listener": " "}, "listener"),
    ],
)
def test_rejects_invalid_arguments(songs, rng, wrong, message):
    with pytest.raises(ValueError, match=message):
        next_question(songs, [], **({"listener": "Ann"} | wrong), rng=rng)


@pytest.mark.long
def test_frequently_used_songs_are_asked_less(rng):
    """Twelve songs are nearly in one place, so all questions carry the same information."""
    alike = Songs(np.repeat(rng.normal(size=(1, 8)), 40, axis=0) + rng.normal(size=(40, 8)))
    often = [answer(Question("odd", (100 + i, 101 + i, 102 + i), False, False), 0) for i in range(18)] * 3
    share = [
        np.mean([
            min(i - 100, 20) < 20
            for _ in range(100)
            for i in next_question(alike, answers, listener="Ann", form="odd", rng=rng).song_ids
        ])
        for answers in ([], often)
    ]  # fmt: skip
    assert share[1] < 0.6 * share[0]


# --- information of a question ------------------------------------------------------------------------


def told(X, question, n_tastes=4000, seed=5):
    """Compute the mutual information of answer and taste with loops, from the definition."""
    rng = np.random.default_rng(seed)
    x = X[np.array(question.song_ids) - 100]
    scale = 0.3 * np.median([((a - b) ** 2).sum() for a, b in combinations(X, 2)])
    chances = []
    for taste in rng.exponential(size=(n_tastes, X.shape[1])):
        d = lambda i, j, taste=taste: float(taste @ (x[i] - x[j]) ** 2)  # noqa: E731
        if question.form == "like":
            costs = [d(0, other) for other in range(1, len(x))]
        else:
            together = [[i for i in range(len(x)) if i != odd] for odd in range(len(x))]
            costs = [np.mean([d(i, j) for i, j in combinations(kept, 2)]) for kept in together]
        e = np.exp(-(np.array(costs) - min(costs)) / scale)
        chances.append(e / e.sum())
    entropy = lambda p: -np.sum(p * np.log(np.maximum(p, 1e-300)), axis=-1)  # noqa: E731
    return entropy(np.mean(chances, axis=0)) - entropy(np.array(chances)).mean()


@pytest.mark.long
@pytest.mark.parametrize("n_songs", [3, 4])
@pytest.mark.parametrize("form", FORMS)
def test_chosen_questions_are_more_informative(rng, form, n_songs, monkeypatch):
    """They carry at least twice the information of random ones; with these songs it is 2.3 to 4 times."""
    few = Songs(rng.normal(size=(30, 6)))
    mean = {}
    for kind in ("telling", "random"):
        monkeypatch.setattr(survey, "SHARES", only(kind))
        asked = [next_question(few, [], listener="Ann", form=form, n_songs=n_songs, rng=rng) for _ in range(25)]
        mean[kind] = np.mean([told(few.X, question, 400) for question in asked])
    assert mean["telling"] > 2 * mean["random"]


@pytest.mark.long
def test_questions_without_disagreement_are_not_asked(monkeypatch):
    """B is near A in one dimension, C in the other, D near A. Only B or C is a matter of taste."""
    monkeypatch.setattr(survey, "SHARES", only("telling"))
    a, b, c, d = 100, 101, 102, 103
    four = Songs(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [0.1, 0.1]]))
    of_taste = {(a, frozenset((b, c))), (d, frozenset((b, c)))}
    for seed in range(40):
        question = next_question(four, [], listener="Ann", form="like", rng=np.random.default_rng(seed))
        assert key(question) in of_taste
    possible = [Question("like", q, False, False) for q in permutations((a, b, c, d), 3)]
    best = sorted(possible, key=lambda q: -told(four.X, q))[:4]
    assert {key(q) for q in best} == of_taste


def tell(taste, X, question):
    """Answer as a listener of this taste: the other two songs are nearest to each other."""
    x = X[np.array(question.song_ids) - 100]
    return int(np.argmin([taste @ (x[(odd + 1) % 3] - x[(odd + 2) % 3]) ** 2 for odd in range(3)]))


def learned(X, answers):
    """Fit weights of the dimensions: logistic loss, nonnegative, regularized to equal weights; convex."""
    rows = np.array([c for a in answers for c in comparisons(a)]) - 100
    F = (X[rows[:, 2]] - X[rows[:, 3]]) ** 2 - (X[rows[:, 0]] - X[rows[:, 1]]) ** 2
    F /= 2 * X.var(axis=0).sum()

    def loss(w):
        z = F @ w
        value = np.logaddexp(0, -z).sum() + 0.05 * ((w - 3) ** 2).sum()
        return value, -F.T @ (1 / (1 + np.exp(z))) + 0.1 * (w - 3)

    start = np.full(X.shape[1], 3.0)
    return minimize(loss, start, jac=True, bounds=[(0, None)] * len(start), method="L-BFGS-B").x


@pytest.mark.long
def test_chosen_questions_train_better_than_random(monkeypatch):
    """Ask 60 questions of each of six listeners, whose taste weighs 30 dimensions, and predict 1,500 others.

    Over twelve such listeners, the gain over random questions is 0.065, with a standard error of 0.01 for six. The test
    requires half of that.
    """
    right = {"telling": [], "random": [], "nothing": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        spread = np.linspace(1.5, 0.4, 30)
        some = Songs(rng.normal(size=(300, 30)) * spread)
        taste = np.exp(1.5 * rng.normal(size=30))
        unseen = rng.normal(size=(1500, 3, 30)) * spread
        apart = np.stack([(unseen[:, (odd + 1) % 3] - unseen[:, (odd + 2) % 3]) ** 2 for odd in range(3)], axis=1)
        truth = (apart @ taste).argmin(axis=1)
        weights = {"nothing": np.ones(30)}
        for kind in ("telling", "random"):
            monkeypatch.setattr(survey, "SHARES", only(kind))
            answers = []
            for _ in range(60):
                question = next_question(some, answers, listener="Ann", rng=rng)
                answers.append(answer(question, tell(taste, some.X, question)))
            weights[kind] = learned(some.X, answers)
        for kind, w in weights.items():
            right[kind].append(((apart @ w).argmin(axis=1) == truth).mean())
    mean = {kind: float(np.mean(shares)) for kind, shares in right.items()}
    assert mean["telling"] > mean["random"] + 0.03
    assert mean["random"] > mean["nothing"]


# --- a library ------------------------------------------------------------------------------------


def test_questions_use_library_songs(snapshot, rng):
    library = snapshot.library
    for i in range(30):
        question = next_question(
            snapshot, library.judgments.answers(), listener="Ann", form=FORMS[i % 2], n_songs=3 + i % 2, rng=rng
        )
        assert (snapshot.rows_of(question.song_ids) >= 0).all()
        library.judgments.add(
            "Ann",
            question.form,
            question.song_ids,
            1,
            is_random=question.is_random,
            foreseen=is_predicted(snapshot, question, 1),
        )
    assert summarize_answers(library.judgments.answers()).n_answers == 30


def test_duplicate_counts_as_its_song(tiny_library, rng, monkeypatch):
    """An answer about a duplicate counts for the song itself, and a pair of both is not a question."""
    first, copy, b, c = (song.id for song in tiny_library.songs()[:4])
    tiny_library.duplicates.enter([SamePair(first, copy, 1.0, 0.0)], [])
    snapshot = take_snapshot(tiny_library)
    gone, kept = next(iter(snapshot.representative_of.items()))
    assert {gone, kept} == {first, copy}
    for songs_ in ((gone, b, c), (gone, kept, b)):
        tiny_library.judgments.add("Ann", "odd", songs_, 0)
    answers = tiny_library.judgments.answers()
    for _ in range(60):
        question = next_question(snapshot, answers, listener="Ann", rng=rng)
        assert question.is_repeat == (set(question.song_ids) == {gone, b, c})
        assert {gone, kept} - set(question.song_ids), "not both"
        assert set(question.song_ids) != {kept, b, c}, "asked already, as the copy"


# --- prediction -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_songs", [3, 4])
@pytest.mark.parametrize("form", FORMS)
def test_prediction_matches_distances(songs, rng, form, n_songs):
    for _ in range(50):
        question = next_question(songs, [], listener="Ann", form=form, n_songs=n_songs, rng=rng)
        x = songs.X[songs.rows_of(question.song_ids)].astype(float)
        if form == "like":
            best = 1 + int(np.argmin([np.linalg.norm(x[0] - y) for y in x[1:]]))
        else:
            apart = [sum(((x[i] - y) ** 2).sum() for y in x) for i in range(n_songs)]
            best = int(np.argmax(apart))  # the sum over all pairs does not depend on the one left out
        choices = range(1 if form == "like" else 0, n_songs)
        assert [is_predicted(songs, question, chosen) for chosen in choices] == [c == best for c in choices]


def test_ties_are_not_predicted():
    even = Songs(np.array([[0.0], [1.0], [-1.0]]))
    like, odd = (Question(form, (100, 101, 102), True, False) for form in FORMS[::-1])
    assert not any(is_predicted(even, like, chosen) for chosen in (1, 2))
    assert not any(is_predicted(even, odd, chosen) for chosen in (1, 2))
    with pytest.raises(ValueError, match="chosen=0 must be from 1 to 2"):
        is_predicted(even, like, 0)
    with pytest.raises(NotFoundError, match="song 999 has no vector"):
        is_predicted(even, replace(odd, song_ids=(100, 101, 999)), 0)


# --- counts and consistency --------------------------------------------------------------------------------------


def said(listener, ids, chosen, form="odd", *, is_random=False, was_foreseen=None):
    """Return an answer that names the chosen song."""
    place = None if chosen is None else ids.index(chosen)
    return Judgment(0, 0.0, listener, form, ids, place, {"is_random": is_random, "foreseen": was_foreseen})


def test_survey_without_answers_is_empty():
    none = summarize_answers([])
    assert (none.n_answers, none.n_unsure, none.n_listeners) == (0, 0, 0)
    for rate in (none.consistency, none.agreement, none.predicted):
        assert (rate.share, rate.n, rate.low, rate.high, rate.chance) == (None, 0, 0.0, 1.0, None)


ANSWERS = [
    said("Ann", (1, 2, 3), 1),
    said("Ann", (3, 1, 2), 1),  # the same again
    said("Ann", (2, 1, 3), 2),  # and another one
    said("Ann", (2, 1, 3), None),
    said("Bob", (3, 2, 1), 1),  # the same as Ann's first answer
    said("Cy", (1, 2, 3), 3),
    said("Bob", (1, 2, 3), 2, "like"),
    said("Cy", (1, 3, 2), 2, "like"),  # the same as Bob's
    said("Ann", (2, 1, 3), 3, "like"),  # another first song makes another question
    said("Bob", (1, 2, 3, 4), 4),  # about other songs
    said("Bob", (5, 6, 7), None),
    said("Dee", (5, 6, 7), 6),
]


def test_consistency_and_agreement_are_counted():
    all_of_them = summarize_answers(ANSWERS)
    assert (all_of_them.n_answers, all_of_them.n_unsure, all_of_them.n_listeners) == (12, 2, 4)
    assert (all_of_them.consistency.share, all_of_them.consistency.n) == (1 / 2, 2)
    assert (all_of_them.agreement.share, all_of_them.agreement.n) == (2 / 4, 4)  # AB, AC, BC, and BC for "like"
    assert all_of_them.consistency.chance == pytest.approx(1 / 3)
    assert all_of_them.agreement.chance == pytest.approx((3 * 1 / 3 + 1 / 2) / 4)
    ann, bob, dee = (summarize_answers(ANSWERS, who) for who in ("Ann", "Bob", "Dee"))
    assert (ann.n_answers, ann.n_unsure, ann.n_listeners) == (5, 1, 4)
    assert (ann.consistency.n, bob.consistency.n) == (2, 0)
    assert (ann.agreement.share, ann.agreement.n) == (1 / 2, 2)
    assert (bob.agreement.share, bob.agreement.n) == (2 / 3, 3)
    assert dee.agreement.n == 0


def test_model_is_evaluated_on_random_questions():
    answers = [
        *[said("Ann", (1, 2, 3), 1, is_random=True, was_foreseen=True)] * 3,
        said("Ann", (1, 2, 3, 4), 1, is_random=True, was_foreseen=False),
        said("Ann", (1, 2, 3), 2, "like", is_random=True, was_foreseen=True),
        *[said("Ann", (1, 2, 3), 1, was_foreseen=False)] * 9,  # chosen by the model
        said("Ann", (1, 2, 3), 1, is_random=True),  # there was no model
        said("Ann", (1, 2, 3), None, is_random=True),
        said("Bob", (1, 2, 3), 1, is_random=True, was_foreseen=False),
    ]
    rate = summarize_answers(answers).predicted
    assert (rate.share, rate.n) == (4 / 6, 6)
    assert rate.chance == pytest.approx((3 / 3 + 1 / 4 + 1 / 2 + 1 / 3) / 6)
    assert (summarize_answers(answers, "Ann").predicted.share, summarize_answers(answers, "Ann").predicted.n) == (
        4 / 5,
        5,
    )


@pytest.mark.parametrize(("n_right", "n"), [(0, 1), (1, 1), (3, 10), (0, 25), (25, 25), (446, 1000)])
def test_intervals_match_wilson(n_right, n):
    """Compare with scipy up to the normal quantile. Each end solves |share - p| = z sqrt(p (1 - p) / n)."""
    answers = [said("Ann", (1, 2, 3), 1, is_random=True, was_foreseen=i < n_right) for i in range(n)]
    rate = summarize_answers(answers).predicted
    theirs = binomtest(n_right, n).proportion_ci(0.95, "wilson")
    assert (rate.low, rate.high) == (pytest.approx(theirs.low, abs=1e-6), pytest.approx(theirs.high, abs=1e-6))
    for end in (rate.low, rate.high):
        assert abs(rate.share - end) == pytest.approx(1.959964 * (end * (1 - end) / n) ** 0.5, abs=1e-7)
