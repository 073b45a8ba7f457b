"""Blind questions about steps of playlists: the reason of the step, and a reason that is true of the first song only.

The false reason comes from an edge of about the same size that contains the first song but not the second one. It is
drawn in proportion to the probability that the walk follows it from the first song. The walk could have stated any of
these edges, so the words alone tell little about which reason is true.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from musicsim import playlist
from musicsim.explorer import EDGE_FAMILIES, Edge, PlaylistRequest, Rate, Walk, draw_seed, measure_rate, shuffle_sides
from musicsim.library import Judgment, Opinions, Song
from musicsim.wording import count

KIND = "reasons"  # kind under which the answers are stored as judgments
_MAX_TRIES = 20  # maximum number of playlists to search for a step


@dataclass(frozen=True, slots=True)
class ReasonQuestion:
    """A step of a playlist, and two reasons in random order."""

    songs: tuple[Song, Song]
    reasons: tuple[Edge, Edge]
    true: int  # position of the true reason
    model_id: str | None
    dialect: str | None


@dataclass(frozen=True, slots=True)
class ReasonResults:
    """The share of questions in which the true reason was found; unsure answers do not count."""

    found: Rate
    n_unsure: int
    by_family: Mapping[str, Rate]  # keyed by the family of the true reason; a combination counts for both families


def draw_question(
    walk: Walk, request: PlaylistRequest, random_state: int | np.random.Generator | None = None
) -> ReasonQuestion | None:
    """Generate a playlist for the request, and return a question about one of its steps.

    Steps without a reason or without a suitable false reason are skipped. If all steps are skipped in 20 playlists, the
    result is None. Raises the errors of :meth:`Walk.generate`.
    """
    rng = np.random.default_rng(random_state)
    for _ in range(_MAX_TRIES):
        generated = walk.generate(request, draw_seed(rng))
        steps = list(zip(generated.songs, generated.songs[1:], generated.edges[1:], strict=False))
        for at in rng.permutation(len(steps)).tolist():
            song, following, stated = steps[at]
            if stated is None or stated.name in ("", playlist.UNIFORM):
                continue
            reason, others = walk.true_and_false_reasons(song.id, following.id, stated.name, request.dialect)
            if request.spacing:  # no step may state an artist, so such a reason would be known to be false
                others = [one for one in others if "artist" not in playlist.edge_families([one.name])[0]]
            if others:
                p = np.array([other.probability for other in others])
                reasons = shuffle_sides(reason, others[int(rng.choice(len(others), p=p / p.sum()))], rng)
                model = walk.snapshot.record
                return ReasonQuestion(
                    (song, following), reasons, reasons.index(reason), model.id if model else None, request.dialect
                )
    return None


def record(opinions: Opinions, question: ReasonQuestion, chosen: int | None) -> int:
    """Save an answer with the songs, both reasons and the model; return the answer's id."""
    return opinions.judgments.add(
        "", KIND, (), chosen, options=[edge.label for edge in question.reasons],
        edges=[edge.name for edge in question.reasons], true=question.true,
        songs=[song.id for song in question.songs], model=question.model_id, dialect=question.dialect,
    )  # fmt: skip


def summarize(answers: Sequence[Judgment]) -> ReasonResults:
    """Return the share of true reasons that were found, with its interval, and this share for each family."""
    found, by_family = [], defaultdict(list)
    for answer in answers:
        if answer.chosen is None:
            continue
        case = (answer.chosen == answer.context["true"], 0.5)
        found.append(case)
        for family in playlist.edge_families([answer.context["edges"][answer.context["true"]]])[0]:
            by_family[EDGE_FAMILIES[family][0]].append(case)
    rates = {family: measure_rate(cases) for family, cases in sorted(by_family.items())}
    return ReasonResults(measure_rate(found), len(answers) - len(found), rates)


def describe(results: ReasonResults) -> str:
    """Describe the results in one or two sentences."""
    found = results.found
    unsure = f" You could not tell in {count(results.n_unsure, 'question')}." if results.n_unsure else ""
    if found.share is None:
        return unsure.strip() or "No answers yet."
    return f"You found the true reason in {found.describe('question')}.{unsure}"
