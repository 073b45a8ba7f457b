"""The models of two people in one library, how well each predicts its person, and whether their tastes differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from musicsim._arrays import Float32Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer import (
    LEARNED_KIND,
    ORDER_LOSS,
    Answered,
    Rate,
    Snapshot,
    estimate_rate,
    load_report,
    shares_in_order,
)
from musicsim.extensions.two_ears import disagreement
from musicsim.extensions.two_ears.disagreement import DividingTriples
from musicsim.library import Library, ModelRecord

_MAX_SONGS = 1_000  # number of songs that triples are drawn from


@dataclass(frozen=True, slots=True)
class Ear:
    """A person's model, and its accuracy on the person's held-out answers.

    `crossed` is the accuracy of the other model on this person's answers; None if the library has no such answers.
    """

    person: str
    snapshot: Snapshot
    accuracy: Rate
    crossed: Rate | None = field(default=None)

    @property
    def model_id(self) -> str:
        assert self.snapshot.record is not None
        return self.snapshot.record.id

    def vectors(self, song_ids: Int64Array) -> Float32Array:
        """Return the vectors of songs in the person's model."""
        return self.snapshot.vectors_at(self.snapshot.rows_of(song_ids))


def _read_report(library: Library, record: ModelRecord) -> tuple[str, Rate] | None:
    """Return the listener ("" for all) and the accuracy in a training report; None if no answers were held out."""
    report = load_report(library.models.path(record.id))
    lead = report.get("leads", {}).get(ORDER_LOSS)
    if "answers" not in report or lead is None:
        return None
    accuracy = estimate_rate(lead["after"], report["answers"]["questions"])
    return report["settings"].get("listener", ""), accuracy


def list_ears(library: Library) -> list[ModelRecord]:
    """Return the models that were trained on answers, also those imported from other libraries."""
    return [record for record in library.models.all() if _read_report(library, record) is not None]


def _cross(own: Snapshot, other: Snapshot, listener: str) -> Rate | None:
    """Return the accuracy of another person's model on the answers that a model was trained on.

    None for an imported model, because its answers are in another library.
    """
    assert own.record is not None
    answered = Answered.collect(other, listener) if own.record.kind == LEARNED_KIND else Answered([], [])
    if not len(answered):
        return None
    rows, places = np.unique(answered.all(), return_inverse=True)
    ends = np.cumsum([len(one) for one in answered.comparisons])[:-1]
    local = Answered(np.split(places.reshape(-1, 4), ends), answered.questions)
    shares = shares_in_order(other.vectors_at(rows).astype(np.float64), local)
    return estimate_rate(float(shares.mean()), len(set(answered.questions)))


class TwoEars:
    """The models of two people, over the songs that both can compare, `shared_ids` (n_shared,).

    Triples are drawn from at most 1,000 of them, `song_ids` (n_songs,). Raises ModelError if a model was not trained on
    answers, if both are the same, or if they share fewer than 3 songs.
    """

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self.library = snapshots[0].library
        found: list[tuple[str, Rate]] = []
        for snapshot in snapshots:
            read = _read_report(self.library, snapshot.record) if snapshot.record else None
            if read is None:
                name = snapshot.record.name if snapshot.record else self.library.name
                raise ModelError(f"{name}: no answers were held out to test it. Choose a model trained on answers.")
            found.append(read)
        names = [snapshot.record.name for snapshot in snapshots if snapshot.record]
        if names[0] == names[1]:
            raise ModelError(f"both models are {names[0]!r}. Choose the models of two people.")
        people = [listener or name for (listener, _), name in zip(found, names, strict=True)]
        if people[0] == people[1]:
            people = names
        mine, theirs = (
            Ear(person, snapshot, accuracy, _cross(snapshot, other, listener))
            for person, snapshot, other, (listener, accuracy) in zip(
                people, snapshots, reversed(snapshots), found, strict=True
            )
        )
        self.ears = (mine, theirs)
        self.shared_ids: Int64Array = np.intersect1d(mine.snapshot.row_ids, theirs.snapshot.row_ids)
        if len(self.shared_ids) < 3:
            raise ModelError(
                f"{names[0]}, {names[1]}: only {len(self.shared_ids)} songs can be compared in both. Add songs."
            )
        rng = np.random.default_rng(0)
        self.song_ids = rng.permutation(self.shared_ids)[:_MAX_SONGS]
        self.triples = DividingTriples(random_state=rng).fit(
            [ear.vectors(self.song_ids) for ear in self.ears], [ear.accuracy for ear in self.ears]
        )

    @property
    def people(self) -> tuple[str, str]:
        """The names of the two people."""
        return self.ears[0].person, self.ears[1].person

    @property
    def model_ids(self) -> tuple[str, str]:
        """The ids of the two models."""
        return self.ears[0].model_id, self.ears[1].model_id

    @property
    def is_difference_shown(self) -> bool | None:
        """True if the answers of one person show that the tastes differ; None if the library has no such answers."""
        checks = [disagreement.is_difference(ear.accuracy, ear.crossed) for ear in self.ears if ear.crossed]
        return any(checks) if checks else None

    def find_dividing(self, n: int | None = None) -> Int64Array:
        """Return the song ids of triples that are predicted to divide the people, (n_found, 3), surest first.

        There are none if the answers do not show that the tastes differ.
        """
        return self.song_ids[self.triples.find(n if self.is_difference_shown is not False else 0)]

    def predict_proba(self, song_ids: Sequence[int]) -> list[float]:
        """Return the probability in each model that song b is chosen over c, for the songs (a, b, c) of a question."""
        ids, triple = np.array(song_ids), np.arange(3)[None, :]
        margins = (disagreement.measure_margins(ear.vectors(ids), triple) for ear in self.ears)
        pairs = zip(margins, self.triples.slopes_[:, 0], strict=True)
        return [float(disagreement.choice_probabilities(*pair)[0]) for pair in pairs]

    def describe(self) -> list[str]:
        """Describe what the models and answers say: a sentence for each person, and one for both."""
        lines = []
        for ear, other in zip(self.ears, reversed(self.people), strict=True):
            line = f"{ear.person}'s answers: {ear.person}'s model predicts {ear.accuracy.describe('held-out answer')}"
            lines.append(line + (f", {other}'s model {ear.crossed.describe('answer')}." if ear.crossed else "."))
        n = len(self.find_dividing())
        found = f"{n:,} of {len(self.triples.triples_):,} random triples of songs are predicted to divide you."
        return [*lines, {
            True: f"Your tastes differ: {found}",
            False: "These answers do not show that your tastes differ, so no triple is predicted to divide you.",
            None: f"The library has no answers by either of you, so model errors may look like differences. {found}",
        }[self.is_difference_shown]]  # fmt: skip
