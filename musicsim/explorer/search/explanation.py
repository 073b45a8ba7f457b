"""An explanation of the similarity of two songs, as *Why?* shows it, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from musicsim.explorer.search.query import Example, Examples, similarities_of, similarity_of
from musicsim.explorer.search.why import CodewordShare, Side, Why
from musicsim.explorer.search.why_groups import Amounts, Share
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.map_columns import PALETTE
from musicsim.explorer.snapshot.snapshot import Snapshot

_MIN_SHARE = 5e-4  # smallest hub correction that counts as a part


@dataclass(frozen=True, slots=True)
class Explanation:
    """The sources of the similarity of two songs."""

    sides: tuple[Side, Side]
    why: Why
    similarity: float  # as listed in results
    parts: tuple[Share, ...]  # those of `why`, and hub correction; they add up to the similarity
    notes: tuple[str, ...]  # problems with the songs' audio features
    uses_regions: bool  # whether results use the metric of the query's region; `why` uses the mean of all regions

    def differences(self) -> Iterator[tuple[Share, tuple[float, ...], int | None]]:
        """Yield the largest differences: their shares of the squared distance in each stage, and the side with more."""
        squares = [amounts.distance**2 or 1.0 for amounts in self.why.stages]  # shares can cancel each other out
        for share in self.why.apart:
            parts = tuple(own.distance / square for own, square in zip(share.stages, squares, strict=True))
            yield share, parts, share.more_in if isinstance(share, CodewordShare) else None


def explain(snapshot: Snapshot, query: int | Example, other_id: int) -> Explanation:
    """Explain why a song is similar to a query; raises NotFoundError or ModelError."""
    one, other, why = explain_result(snapshot, query, other_id)
    similarity = similarity_of(snapshot, query, other_id)
    parts = (*why.parts, *_correct_hubs(why, similarity))
    uses_regions = snapshot.model is not None and snapshot.model.local_ is not None
    return Explanation((one, other), why, similarity, parts, tuple(_describe_gaps((one, other), why)), uses_regions)


def render_explanation(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON."""
    why, sides = explanation.why, explanation.sides
    return {
        "similarity": round(explanation.similarity, 4),
        "similarity_before": _before([stage.similarity for stage in why.stages]),
        "parts": [
            {"words": part.words, **_stages([stage.similarity for stage in part.stages])} for part in explanation.parts
        ],
        "differences": [
            {
                "words": share.words, **_stages(parts),
                "more_in": None if side is None else sides[side].song_id, "more_in_place": side,
            }
            for share, parts, side in explanation.differences()
        ],
        "uses_regions": explanation.uses_regions,
        "shared_sounds": list(why.shared),
        "sound_colors": list(PALETTE[: len(why.shared)]),
        "songs": [
            {
                "id": side.song_id, "title": side.title, "by": side.sub, "duration_s": side.duration_s,
                "starts_s": round(side.starts_s, 2), "heard_s": round(heard_s, 2), "n_listeners": len(side.listeners),
                "peaks": [round(peak, 3) for peak in side.peaks.tolist()],
                "passages": [
                    {"start_s": round(p.start_s, 2), "end_s": round(p.end_s, 2), "sound": p.slot} for p in passages
                ],
                "curve": [round(value, 4) for value in curve.tolist()],
            }
            for side, heard_s, passages, curve in zip(sides, why.heard_s, why.passages, why.curves, strict=True)
        ],
        "tags": list(why.tags),
        "guessed_tags": list(why.guesses),
        "n_listeners": why.n_listeners,
        "listeners_jaccard": why.listeners_jaccard,
        "notes": list(explanation.notes),
    }  # fmt: skip


def render_examples(snapshot: Snapshot, examples: Examples, other_id: int) -> dict[str, Any]:
    """Return a song's similarities to examples as JSON: to all together, and to each one, in their order."""
    ids = [one for one in (*examples.like, *examples.unlike) if isinstance(one, int)]
    titles = {song.id: song.title for song in snapshot.songs_by_id(ids)}

    def render(some: Sequence[int | Example], similarities: Sequence[float]) -> list[dict[str, Any]]:
        return [
            {
                "id": one.song_id if isinstance(one, Example) else one,
                "title": one.name if isinstance(one, Example) else titles.get(one, ""),
                "similarity": round(similarity, 4),
            }
            for one, similarity in zip(some, similarities, strict=True)
        ]

    to_like, to_unlike = similarities_of(snapshot, examples, other_id)
    return {
        "similarity": round(similarity_of(snapshot, examples, other_id), 4),
        "like": render(examples.like, to_like),
        "unlike": render(examples.unlike, to_unlike),
    }


def _stages(values: Sequence[float]) -> dict[str, float | None]:
    return {"share": round(values[-1], 4), "share_before": _before(values)}


def _before(values: Sequence[float]) -> float | None:
    """Return the value before learning; None if the model was not learned."""
    return round(values[0], 4) if len(values) > 1 else None


def _correct_hubs(why: Why, similarity: float) -> list[Share]:
    """Return hub reduction (or clipping at 0) as a part, so that the parts add up to the listed similarity."""
    added = similarity - sum(part.stages[-1].similarity for part in why.parts)
    if abs(added) < _MIN_SHARE:
        return []
    words = "hub correction: few songs are this close" if added > 0 else "hub correction: many songs are this close"
    return [Share(words, (*[Amounts(0.0, 0.0)] * (len(why.stages) - 1), Amounts(0.0, added)))]


def _describe_gaps(sides: tuple[Side, Side], why: Why) -> Iterator[str]:
    """Yield a note for each song whose sound was not compared completely."""
    for side, heard_s in zip(sides, why.heard_s, strict=True):
        if not heard_s:
            yield (
                f"The audio features of “{side.title}” were not stored, so similar passages cannot be "
                "found. Turn on “Store audio features” (Library > Settings) and scan its folder again."
            )
        elif heard_s < side.duration_s - 2:
            yield f"Only the first {heard_s / 60:.0f} minutes of “{side.title}” were analyzed."
    if all(why.heard_s) and not why.shared:
        yield "No single passage explains the similarity: the shared sounds are spread over both songs."
