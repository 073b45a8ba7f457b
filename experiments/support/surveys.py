"""Two surveys of listeners, thesis 2.5.2's and that of bliss, and the highest accuracy their answers allow."""

import csv
from dataclasses import dataclass

import numpy as np

from benchmarks.support.report import Row
from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find, open_text

__all__ = [
    "Survey",
    "agreed_by_all",
    "agreed_by_others",
    "agreement",
    "ceiling",
    "ceiling_row",
    "comparisons_of",
    "label_kernel",
    "load_artists",
    "load_survey",
    "odd_named",
]


_BOOTSTRAPS = 10_000


# --- data ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Survey:
    """Songs by descriptors, and answers: three songs each, and the position of the odd one."""

    X: Float64Array
    songs: Int64Array
    odd: Int64Array

    @property
    def groups(self) -> Int64Array:
        """A number for each set of three songs."""
        groups: Int64Array = np.unique(np.sort(self.songs, axis=1), axis=0, return_inverse=True)[1]
        return groups.ravel()


def load_survey() -> Survey:
    """Load the survey of `bliss_triplets`."""
    with open_text("bliss_triplets", "analysis.csv") as file:
        rows = list(csv.reader(file))[1:]
    place = {row[0]: i for i, row in enumerate(rows)}
    with open_text("bliss_triplets", "answer.csv") as file:
        answers = list(csv.DictReader(file))
    asked = [[answer[f"song{i}"] for i in (1, 2, 3)] for answer in answers]
    return Survey(
        np.array([row[1:] for row in rows], dtype=np.float64),
        np.array([[place[name] for name in names] for names in asked]),
        np.array([names.index(a["picked_song"]) for names, a in zip(asked, answers, strict=True)]),
    )


def load_artists() -> tuple[Int64Array, Float64Array]:
    """Load comparisons (m, 4) of `aset400`, except those of an artist with itself, and labels (n_artists, n_labels)."""
    with np.load(find("aset400", "aset400.npz")) as held:
        triplets, labels = held["triplets"].astype(np.int64), held["labels"].astype(np.float64)
    triplets = triplets[[len(set(row)) == 3 for row in triplets.tolist()]]
    return triplets[:, [0, 1, 0, 2]], labels


# --- measures -----------------------------------------------------------------------------------------


def comparisons_of(songs: Int64Array, odd: Int64Array) -> Int64Array:
    """Return two comparisons per answer, (2 m, 4): the other two are nearer to each other than to the odd one."""
    rows = np.arange(len(songs))
    o, a, b = (songs[rows, (odd + shift) % 3] for shift in range(3))
    return np.concatenate([np.stack([a, b, a, o], axis=1), np.stack([a, b, b, o], axis=1)])


def odd_named(points: Float64Array, songs: Int64Array, odd: Int64Array) -> float:
    """Return the share of answers whose odd song is outside the nearest pair; ties are broken by chance."""
    others = [(1, 2), (2, 0), (0, 1)]
    D = np.stack([np.square(points[songs[:, a]] - points[songs[:, b]]).sum(axis=1) for a, b in others], axis=1)
    is_nearest = D.min(axis=1, keepdims=True) == D
    named = is_nearest[np.arange(len(D)), odd] / is_nearest.sum(axis=1)
    return float(named.mean())


def agreement(groups: Int64Array, odd_songs: Int64Array) -> Float64Array:
    """Return, for each repeated question, the share of pairs of answers that agree."""
    shares = []
    for group in np.flatnonzero(np.bincount(groups) > 1):
        counts = np.unique(odd_songs[groups == group], return_counts=True)[1]
        n = counts.sum()
        shares.append(float((counts * (counts - 1)).sum() / (n * (n - 1))))
    return np.array(shares)


def agreed_by_all(votes: Int64Array, against: Int64Array) -> Float64Array:
    """Return the share of votes on the side of the majority: no distance can agree with more of them."""
    return np.asarray(np.maximum(votes, against) / (votes + against))


def agreed_by_others(votes: Int64Array, against: Int64Array) -> Float64Array:
    """Return the share of votes on the side of the majority of the other votes; a tie of the others counts half.

    The vote itself is left out of the majority, so that a question with few votes does not seem to be agreed upon.
    """
    lead = votes - against
    for_it, for_other = (np.clip((side - 1) * 0.5 + 0.5, 0.0, 1.0) for side in (lead, -lead))
    return np.asarray((votes * for_it + against * for_other) / (votes + against))


def ceiling(agreed: float) -> float:
    """Return the best possible accuracy if everyone errs alike.

    The model: an answer is the odd song with probability q, otherwise chance. Two answers agree with probability ``q^2
    + (1 - q)^2 / 2``. The result is 1/3 if they agree less often than by chance.
    """
    return float((1.0 + np.sqrt(max(6.0 * agreed - 2.0, 0.0))) / 3.0)


def label_kernel(labels: Float64Array) -> Float64Array:
    """Return the cosine of 0/1 labels; an artist without labels is similar only to itself."""
    norms = np.linalg.norm(labels, axis=1)
    unit = labels / np.maximum(norms, 1.0)[:, None]
    return np.asarray(unit @ unit.T + np.diag((norms == 0).astype(np.float64)))


def ceiling_row(survey: Survey, seed: int) -> Row:
    """Return the upper bounds that repeated questions imply, with bootstrap intervals."""
    odd_songs = survey.songs[np.arange(len(survey.odd)), survey.odd]
    shares = agreement(survey.groups, odd_songs)
    rng = np.random.default_rng(seed)
    drawn = shares[rng.integers(len(shares), size=(_BOOTSTRAPS, len(shares)))].mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    q, q_low, q_high = (ceiling(a) for a in (float(shares.mean()), low, high))
    counts = np.bincount(survey.groups)
    return {
        "questions asked several times": len(shares),
        "answers": int(counts[counts > 1].sum()),
        "all the same": int(np.count_nonzero(shares == 1.0)),
        "pairs of answers that agree": float(shares.mean()),
        "from": float(low),
        "to": float(high),
        "ceiling, odd one named": q,
        "ceiling from": q_low,
        "ceiling to": q_high,
        # if the nearest pair is as predicted, both comparisons are right; otherwise one or none, equally likely
        "ceiling, in order": q + (1.0 - q) / 4.0,
        "its lower end": q_low + (1.0 - q_low) / 4.0,
        "its upper end": q_high + (1.0 - q_high) / 4.0,
    }
