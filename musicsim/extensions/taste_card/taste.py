"""A listener's taste: the shares of the parts, the consistency of the answers, and how well they are predicted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer import Rate, Snapshot, measure_rate, summarize_answers
from musicsim.extensions.taste_card.parts import Parts
from musicsim.extensions.taste_card.shares import Band, Choices, Fit
from musicsim.library import Judgment, question_key
from musicsim.wording import capitalize, count

MIN_ANSWERS = 30
_FOLDS = 10
_UNDECIDED = 1e-6  # sum of psi below which no part predicts the answers


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
    """The taste of one listener. `parts` is empty if there are too few answers or no part predicts them."""

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
        """Describe the parts, one sentence each, and then the answers as a whole."""
        if self.n_needed:
            return [f"{capitalize(count(self.n_needed, 'more answer'))} needed: {self.n_answers} of {MIN_ANSWERS}."]
        lines = [f"{capitalize(part.name)}: {part.amount} of the distance; {part.verdict}." for part in self.parts]
        lines = lines or ["The answers follow none of the parts so far."]
        if self.consistency.share is not None:
            lines.append(f"Repeated questions got the same answer in {self.consistency.describe()}.")
        others = f"Sound alone predicts {self.predicted_by_sound.share:.0%}, and guessing {self.predicted.chance:.0%}"
        return [*lines, f"Held-out answers are predicted in {self.predicted.describe()}; {others}."]


def find_listener(listeners: Sequence[str], chosen: str | None) -> str:
    """Return the listener whose answers to use. Raises NotFoundError if there are none, or if several can be meant."""
    found = [listener for listener in listeners if chosen in (None, listener)]
    if len(found) != 1:
        known = ", ".join(listeners) or "none so far; answer questions in Compare first"
        raise NotFoundError(f"--listener must be one of those who have answered ({known}).")
    return found[0]


def estimate_taste(snapshot: Snapshot, answers: Sequence[Judgment], listener: str) -> Taste:
    """Estimate a listener's taste from the answers of all listeners, of which only this listener's count.

    Held-out answers are predicted from the other nine tenths; a repeated question is in one tenth. Intervals of shares
    of answers are Wilson's. Takes some 0.3 s for 300 answers. Raises ModelError if Sound cannot compare songs.
    """
    theirs = [answer for answer in answers if answer.listener == listener]
    parts = Parts(snapshot)
    used = [(a, d) for a, d in zip(theirs, parts.differences(theirs), strict=True) if d is not None]
    consistency, nothing = summarize_answers(theirs).consistency, measure_rate([])
    if len(used) < MIN_ANSWERS:
        return Taste(listener, len(used), (), consistency, nothing, nothing)
    keys = [question_key(answer.kind, answer.song_ids) for answer, _ in used]
    number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    differences = [one for _, one in used]
    choices = Choices(differences)
    held_out = predict_held_out(differences, np.array([number[key] for key in keys]))
    predicted, by_sound = (
        measure_rate((right, 1 / (1 + len(one))) for right, one in zip(is_right.tolist(), differences, strict=True))
        for is_right in (held_out, choices.are_predicted(parts.plain))
    )
    fit = Fit(choices)
    bands = zip(parts.names, parts.plain.tolist(), fit.bands if fit.psi.sum() > _UNDECIDED else (), strict=False)
    return Taste(listener, len(used), tuple(PartOfTaste(*one) for one in bands), consistency, predicted, by_sound)


def predict_held_out(differences: Sequence[Float64Array], groups: Int64Array, random_state: int = 0) -> BoolArray:
    """Return whether each answer is predicted by a fit without it, (n,); answers of a group are held out together."""
    fold_of = np.random.default_rng(random_state).permutation(groups.max() + 1)[groups] % _FOLDS
    is_right = np.zeros(len(differences), dtype=np.bool_)
    for fold in range(_FOLDS):
        held = fold_of == fold
        if held.any() and not held.all():
            psi = Fit(Choices([*compress(differences, ~held)])).psi
            is_right[held] = Choices([*compress(differences, held)]).are_predicted(psi)
    return is_right


def rate_questions(snapshot: Snapshot, answers: Sequence[Judgment], form: str, song_ids: Int64Array) -> Float64Array:
    """Return by how much an answer to each question would reduce the variance of the widest band, (n_questions,).

    `answers` are those of one listener; the variance is that of the delta method at the estimate (c-optimal design).
    """
    parts = Parts(snapshot)
    given = [differences for differences in parts.differences(answers) if differences is not None]
    psi, widest, hessian = 3 * parts.plain, 0, np.eye(len(parts.names))  # before there are enough answers
    if len(given) >= MIN_ANSWERS:
        fit = Fit(Choices(given))
        widest = int(np.argmax([band.high - band.low for band in fit.bands]))
        if fit.psi.sum() > _UNDECIDED:
            psi = fit.psi
        hessian = Choices(given).loss(psi)[2]
    return reduce_variance(parts.costs(song_ids, form), psi, hessian, widest)


def reduce_variance(options: Float64Array, psi: Float64Array, hessian: Float64Array, part: int) -> Float64Array:
    """Return the decrease in variance of the share of a part, (n_questions,); 0 for unknown costs (NaN).

    `options` (n_questions, n_options, n_parts) are costs, and `hessian` is that of the loss at `psi`.
    """
    from scipy.special import softmax

    options = np.where(np.isfinite(options).all(axis=(1, 2), keepdims=True), options, 0.0)
    slope = (np.eye(len(psi))[part] - psi[part] / psi.sum()) / psi.sum()
    p = softmax(-options @ psi, axis=1)
    centered = options - np.einsum("qo,qog->qg", p, options)[:, None, :]
    information = np.einsum("qo,qog,qoh->qgh", p, centered, centered)
    after: Float64Array = np.linalg.solve(hessian + information, slope[:, None])[..., 0] @ slope
    return slope @ np.linalg.solve(hessian, slope) - after
