"""A listener's taste: the shares of the parts, the consistency of the answers, and how well they are predicted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.survey.questions import Rate, measure_rate, summarize_answers
from musicsim.extensions.taste_card.parts import Parts
from musicsim.extensions.taste_card.shares import Band, Choices, Fit
from musicsim.library.stores.judgments import Judgment, question_key
from musicsim.wording import capitalize, count

MIN_ANSWERS = 30
_FOLDS = 10
_UNDECIDED = 1e-6  # sum of psi below which no part predicts the answers
_PLAIN_SUM = 3.0  # sum of psi before there are answers; about that of `softness` in the core's questions


@dataclass(frozen=True, slots=True)
class PartOfTaste:
    """The share of one part in a listener's distances, and in those of Sound."""

    name: str
    plain: float
    band: Band

    @property
    def is_shown(self) -> bool:
        """True if the answers show that the part counts more, or less, than in Sound."""
        return not self.band.low <= self.plain <= self.band.high

    @property
    def amount(self) -> str:
        """The share and its band, as text."""
        return f"{self.band.share:.0%} ({self.band.low:.0%} to {self.band.high:.0%})"

    @property
    def verdict(self) -> str:
        """Comparison of the share with that in Sound, as text."""
        if not self.is_shown:
            return "no difference from Sound shown"
        if not self.plain:
            return "Sound does not use it"
        times, low, high = (share / self.plain for share in (self.band.share, self.band.low, self.band.high))
        return f"{times:.1f} times as much as in Sound ({low:.1f} to {high:.1f})"


@dataclass(frozen=True, slots=True)
class Taste:
    """What the answers of one listener show. `parts` is empty if there are too few answers or no part predicts them."""

    listener: str
    n_answers: int  # number of answers used: decided ones, about songs with all parts
    parts: tuple[PartOfTaste, ...]
    consistency: Rate  # how often repeated questions got the same answer
    predicted: Rate  # how often held-out answers were predicted
    predicted_by_sound: Rate  # how often Sound predicted the same answers

    @property
    def n_needed(self) -> int:
        """Number of further answers before bands are computed."""
        return max(0, MIN_ANSWERS - self.n_answers)

    def describe(self) -> list[str]:
        """Describe the parts and the answers, one sentence each."""
        if self.n_needed:
            return [f"{capitalize(count(self.n_needed, 'more answer'))} needed: {self.n_answers} of {MIN_ANSWERS}."]
        lines = [f"{capitalize(part.name)}: {part.amount} of the distance; {part.verdict}." for part in self.parts]
        return [*lines, *self.notes]

    @property
    def notes(self) -> list[str]:
        """Sentences about the answers as a whole."""
        lines = [] if self.parts else ["The answers follow none of the parts so far."]
        if self.consistency.share is not None:
            lines.append(f"Repeated questions got the same answer in {_percent(self.consistency)}.")
        lines.append(
            f"Held-out answers are predicted in {_percent(self.predicted)}; Sound alone predicts "
            f"{self.predicted_by_sound.share:.0%}, and guessing {self.predicted.chance:.0%}."
        )
        return lines


def find_listener(listeners: Sequence[str], chosen: str | None) -> str:
    """Return the listener whose answers to use. Raises NotFoundError if there are none, or if several can be meant."""
    if chosen is not None and chosen in listeners:
        return chosen
    if chosen is None and len(listeners) == 1:
        return listeners[0]
    if not listeners:
        raise NotFoundError("there are no answers yet: answer questions in Compare first.")
    names = ", ".join(listeners)
    if chosen is None:
        raise NotFoundError(f"several listeners have answered: choose one with --listener ({names}).")
    raise NotFoundError(f"{chosen!r} has not answered any questions: choose one of {names}.")


def estimate_taste(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Taste:
    """Estimate a listener's taste from the answers of all listeners, of which only this listener's count.

    Held-out answers are predicted from the other nine tenths; a repeated question is in one tenth. Intervals of shares
    of answers are Wilson's. Takes some 0.3 s for 300 answers. Raises ModelError if Sound cannot compare songs.
    """
    theirs = [answer for answer in answers if answer.listener == listener]
    parts = Parts(snapshot)
    used = [(a, d) for a, d in zip(theirs, parts.differences(theirs), strict=True) if d is not None]
    consistency = summarize_answers(theirs, listener).consistency
    nothing = measure_rate([])
    if len(used) < MIN_ANSWERS:
        return Taste(listener, len(used), (), consistency, nothing, nothing)
    choices = Choices([differences for _, differences in used])
    chances = [1 / (1 + len(differences)) for _, differences in used]
    predicted = predict_held_out(choices, _group_questions([answer for answer, _ in used]))
    rates = [
        measure_rate(zip(is_right.tolist(), chances, strict=True))
        for is_right in (predicted, choices.are_predicted(parts.plain))
    ]
    fit = Fit(choices)
    bands = fit.bands if fit.psi.sum() > _UNDECIDED else []
    found = tuple(
        PartOfTaste(name, plain, band)
        for name, plain, band in zip(parts.names, parts.plain.tolist(), bands, strict=bool(bands))
    )
    return Taste(listener, len(used), found, consistency, *rates)


def predict_held_out(choices: Choices, groups: Int64Array, random_state: int = 0) -> BoolArray:
    """Return whether each answer is predicted by a fit without it, (n,); answers of a group are held out together."""
    fold_of = np.random.default_rng(random_state).permutation(groups.max() + 1)[groups] % _FOLDS
    is_right = np.zeros(len(choices), dtype=np.bool_)
    for fold in range(_FOLDS):
        held = fold_of == fold
        if held.any() and not held.all():
            is_right[held] = choices.some(held).are_predicted(Fit(choices.some(~held)).psi)
    return is_right


def rate_questions(snapshot: Snapshot, answers: Sequence[Judgment], form: str, song_ids: Int64Array) -> Float64Array:
    """Return by how much an answer to each question would reduce the variance of the widest band, (n_questions,).

    `answers` are those of one listener. The variance of a share is that of the delta method, and the expected
    information of a question is that of its options under the best estimate (c-optimal design).
    """
    parts = Parts(snapshot)
    given = [differences for differences in parts.differences(answers) if differences is not None]
    psi, widest, hessian = parts.plain * _PLAIN_SUM, 0, np.eye(len(parts.names))
    if len(given) >= MIN_ANSWERS:
        fit = Fit(Choices(given))
        widest = int(np.argmax([band.high - band.low for band in fit.bands]))
        if fit.psi.sum() > _UNDECIDED:
            psi = fit.psi
        hessian = Choices(given).loss(psi)[2]
    return reduce_variance(parts.costs(song_ids, form), psi, hessian, widest)


def reduce_variance(options: Float64Array, psi: Float64Array, hessian: Float64Array, part: int) -> Float64Array:
    """Return the decrease in variance of the share of a part, (n_questions,); 0 for questions with unknown costs.

    `options` (n_questions, n_options, n_parts) are costs, and `hessian` is that of the loss at `psi`.
    """
    slope = (np.eye(len(psi))[part] - psi[part] / psi.sum()) / psi.sum()
    utilities = -options @ psi
    p = np.exp(utilities - utilities.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    centered = options - np.einsum("qo,qog->qg", p, options)[:, None, :]
    information = np.einsum("qo,qog,qoh->qgh", p, centered, centered)
    known = np.isfinite(information).all(axis=(1, 2))
    decrease = np.zeros(len(options))
    after = np.linalg.solve(hessian + information[known], np.broadcast_to(slope[:, None], (known.sum(), len(psi), 1)))
    decrease[known] = slope @ np.linalg.solve(hessian, slope) - after[:, :, 0] @ slope
    return decrease


def _group_questions(answers: Sequence[Judgment]) -> Int64Array:
    keys = [question_key(answer.kind, answer.song_ids) for answer in answers]
    number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], dtype=np.int64)


def _percent(rate: Rate) -> str:
    return f"{rate.share:.0%} (95% interval {rate.low:.0%} to {rate.high:.0%}, {count(rate.n, 'case')})"
