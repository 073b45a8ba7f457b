"""Blind questions for two people: is song 1 or song 2 more like the first song?

Half of the questions are predicted to divide the two people, and half are random, in random order. Both people get the
same questions: those that the other person has already answered come first.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from musicsim.explorer import Rate, measure_rate
from musicsim.extensions.two_ears.disagreement import draw_triples
from musicsim.extensions.two_ears.ears import Ear, TwoEars
from musicsim.library import Judgment, Opinions, QuestionKey, question_key

KIND = "two_ears"  # kind under which the answers are stored as judgments
_N_TRIES = 200  # number of dividing triples to choose from, and of random ones
_OPTIONS = ["song 1", "song 2"]


@dataclass(frozen=True, slots=True)
class EarQuestion:
    """A triple of songs for one of two people. The first is the reference."""

    song_ids: tuple[int, ...]
    is_dividing: bool  # True if the two people are predicted to disagree
    person: str
    ear: str  # id of the person's model
    models: tuple[str, str]  # ids of both models
    p: tuple[float, ...]  # probability of song 1 in both models

    @property
    def form(self) -> str:
        return "like"


@dataclass(frozen=True, slots=True)
class EarResults:
    """Agreement of two people with each other and with both models. Unsure answers do not count."""

    divided: Rate  # how often the two people disagreed on triples that were predicted to divide them
    random: Rate  # how often they disagreed on random triples
    predicted: Mapping[tuple[str, str], Rate]  # how often a model predicted a person; keys: person's model, other model


def list_answers(two: TwoEars, opinions: Opinions) -> list[Judgment]:
    """Return the answers about these two models, oldest first."""
    models = set(two.model_ids)
    return [answer for answer in opinions.judgments.all(KIND) if set(answer.context["models"]) == models]


def next_question(
    two: TwoEars, answers: Sequence[Judgment], ear: Ear, rng: np.random.Generator, skipped: Sequence[EarQuestion] = ()
) -> EarQuestion | None:
    """Return the next question for a person; None if no new triple is left. Skipped questions are not asked again."""
    asked = {_key_of(answer) for answer in answers if answer.context["ear"] == ear.model_id}
    asked |= {question_key(one.form, one.song_ids) for one in skipped if one.ear == ear.model_id}

    def make(song_ids: Sequence[int], *, is_dividing: bool) -> EarQuestion:
        p = tuple(two.predict_proba(song_ids))
        return EarQuestion(tuple(song_ids), is_dividing, ear.person, ear.model_id, two.model_ids, p)

    for answer in answers:
        songs = answer.context["songs"]
        if _key_of(answer) not in asked and all((one.snapshot.rows_of(songs) >= 0).all() for one in two.ears):
            return make(songs, is_dividing=answer.context["is_dividing"])
    random = draw_triples(len(two.song_ids), _N_TRIES, rng)
    found = two.find_dividing(_N_TRIES) if rng.random() < 0.5 else random[:0]
    for triples, is_dividing in ((found, True), (two.song_ids[random], False)):
        for first, *others in triples.tolist():
            if question_key("like", (first, *others)) not in asked:
                one, other = rng.permutation(others).tolist()
                return make((first, one, other), is_dividing=is_dividing)
    return None


def record(opinions: Opinions, question: EarQuestion, place: int | None) -> int:
    """Save an answer with the probability of song 1 in both models; return the answer's id.

    `place` is 1 for song 1, 2 for song 2, and None if the person is unsure.
    """
    return opinions.judgments.add(
        "", KIND, (), None if place is None else place - 1, options=_OPTIONS, person=question.person,
        songs=list(question.song_ids), is_dividing=question.is_dividing, ear=question.ear,
        models=list(question.models), p=list(question.p),
    )  # fmt: skip


def summarize(two: TwoEars, answers: Sequence[Judgment]) -> EarResults:
    """Compare the two people's answers with each other and with both models."""
    chosen: dict[QuestionKey, dict[str, int]] = defaultdict(dict)  # song, by question and model of the person
    is_dividing: dict[QuestionKey, bool] = {}
    cases: dict[tuple[str, str], list[tuple[bool, float]]] = defaultdict(list)
    for answer in answers:
        if answer.chosen is None:
            continue
        context = answer.context
        chosen[_key_of(answer)][context["ear"]] = context["songs"][1 + answer.chosen]
        is_dividing[_key_of(answer)] = context["is_dividing"]
        for model, p in zip(context["models"], context["p"], strict=True):
            cases[context["ear"], model].append(((p > 0.5) == (answer.chosen == 0), 0.5))
    differ = {key: len(set(both.values())) > 1 for key, both in chosen.items() if len(both) == len(two.ears)}
    divided, random = (
        measure_rate((is_different, 0.5) for key, is_different in differ.items() if is_dividing[key] == kind)
        for kind in (True, False)
    )
    predicted = {pair: measure_rate(cases[pair]) for pair in product(two.model_ids, two.model_ids)}
    return EarResults(divided, random, predicted)


def describe(two: TwoEars, results: EarResults) -> list[str]:
    """Describe the results, one sentence each."""
    if not results.divided.n + results.random.n:
        return ["No question was answered by both of you yet."]
    lines = [
        f"You disagreed on {rate.describe(f'{kind} triple')}."
        for kind, rate in (("dividing", results.divided), ("random", results.random))
        if rate.n
    ]
    for ear in two.ears:
        own, other = (results.predicted[ear.model_id, one.model_id] for one in sorted(two.ears, key=lambda e: e != ear))
        others_name = next(one.person for one in two.ears if one != ear)
        lines.append(
            f"{ear.person}'s blind answers: {ear.person}'s model predicted {own.describe('answer')}, {others_name}'s "
            f"model {other.share:.0%}."
        )
    return lines


def _key_of(answer: Judgment) -> QuestionKey:
    return question_key("like", answer.context["songs"])
