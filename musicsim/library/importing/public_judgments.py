"""Public data sets of similarity judgments as arrays, for learning without a library.

::

    judged = load_judgments("comparisons_final.csv")
    voted = judged.triplets()
    kept, report = clean_comparisons(voted.comparisons, contradictions="majority", reduce=False)
    LinearPartialOrderEmbedding().fit(X, kept)  # row i of X describes the clip judged.clips[i]

The formats are those of `musicsim answers import`; see :mod:`musicsim.library.importing.answer_csv`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from musicsim._arrays import BoolArray, Int64Array
from musicsim.errors import LibraryError
from musicsim.library.importing.answer_csv import FiledVotes, read_answers


@dataclass(frozen=True, slots=True, eq=False)
class VotedTriplets:
    """Triplets (i, j, k) for d(i, j) < d(i, k), and the listeners who said so or the opposite.

    If more listeners say the opposite, j and k change places. Equal numbers of votes stay in the order of the file.
    """

    triplets: Int64Array  # (m, 3): numbers of clips
    votes: Int64Array  # (m,): for the triplet
    against: Int64Array  # (m,): for the opposite, d(i, k) < d(i, j)
    questions: Int64Array  # (m,): the question of each triplet

    @property
    def has_majority(self) -> BoolArray:
        return self.votes > self.against

    @property
    def comparisons(self) -> Int64Array:
        """One row (i, j, i, k) per vote, also for the opposite, as `clean_comparisons` takes them."""
        both = np.concatenate([self.triplets[:, [0, 1, 0, 2]], self.triplets[:, [0, 2, 0, 1]]])
        return np.repeat(both, np.concatenate([self.votes, self.against]), axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class PublicJudgments:
    """Questions about three clips, and votes.

    The form "odd" asks for the clip that does not belong, "like" for the clip that is more like the first one.
    """

    data_set: str
    form: str
    clips: tuple[str, ...]  # name of each clip in the data set; in dim-sim, the track and the start in seconds
    paths: tuple[str, ...]  # file of each clip
    questions: Int64Array  # (n, 3): numbers of clips
    votes: Int64Array  # (n, 3): number of listeners who chose each clip

    def triplets(self) -> VotedTriplets:
        """Return one triplet per clip of an "odd" question, or one per "like" question.

        A vote for the odd clip k says that d(i, j) < d(i, k) and d(j, i) < d(j, k) for the others, i and j. In a
        triplet with i as the first clip, the votes for k as the odd one therefore stand against those for j. Triplets
        without votes are left out.
        """
        if self.form == "like":
            orders, places = [[0, 1, 2]], [(1, 2)]
        else:
            orders = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
            places = [(k, j) for _, j, k in orders]
        triplets = np.concatenate([self.questions[:, order] for order in orders])
        votes, against = (np.concatenate([self.votes[:, pair[side]] for pair in places]) for side in (0, 1))
        questions = np.tile(np.arange(len(self.questions)), len(orders))
        is_reversed = against > votes
        triplets[is_reversed] = triplets[is_reversed][:, [0, 2, 1]]
        votes, against = np.maximum(votes, against), np.minimum(votes, against)
        is_voted = votes > 0
        return VotedTriplets(triplets[is_voted], votes[is_voted], against[is_voted], questions[is_voted])


def load_judgments(file: str | Path) -> PublicJudgments:
    """Read the votes in MagnaTagATune (comparisons_final.csv) or dim-sim (clean-dim-sim.csv).

    Raises LibraryError, which names the file and the line, for a broken line or another format.
    """
    try:
        with open(file, "rb") as stream:
            rows = list(read_answers(stream, str(file)))
    except OSError as error:
        raise LibraryError(f"{file}: cannot be read ({error.strerror}).") from error
    voted: list[FiledVotes] = []
    for line, row in rows:
        if isinstance(row, str):
            raise LibraryError(f"{file}: line {line}: {row}. Correct or remove this line.")
        if not isinstance(row, FiledVotes):
            raise LibraryError(f"{file}: this file does not contain votes. Choose a file of MagnaTagATune or dim-sim.")
        voted.append(row)
    if not voted:
        raise LibraryError(f"{file}: the file does not contain a comparison. Download it again.")
    paths = {clip: song.path for row in voted for clip, song in zip(row.clips, row.songs, strict=True)}
    number = {clip: n for n, clip in enumerate(paths)}
    return PublicJudgments(
        voted[0].data_set, voted[0].form, tuple(paths), tuple(paths.values()),
        np.array([[number[clip] for clip in row.clips] for row in voted], dtype=np.int64),
        np.array([row.votes for row in voted], dtype=np.int64),
    )  # fmt: skip
