"""Shared parts of training tests: a collection with something to learn, and a progress watcher."""

import json
import math
from pathlib import Path

import numpy as np

from musicsim.evaluation import distance_scores
from musicsim.explorer.models.representations import list_addable, representations
from musicsim.progress import Canceled
from musicsim.relevance import Relevance
from tests.sounds import KINDS, write_song

__all__ = ["CORE_REPRESENTATIONS", "RANKED", "Watcher", "hush", "score_found", "tag_by_kind", "write_styles"]

CORE_REPRESENTATIONS = tuple(
    name for name in list_addable() if not representations()[name].encoder.__module__.startswith("musicsim.extensions.")
)
"""Names of the representations that need no extension."""
RANKED = {
    "name": "mine", "base": "Sound", "created_at": 1.0, "seconds": 2.0, "version": "0.1", "detail": "of genre",
    "settings": {
        "supervision": "genre", "on": [], "loss": "auc", "C": None, "k": 10, "threshold": 10, "structure": "full",
        "regularizer": "trace", "random_state": 0, "listener": "", "method": "ranking",
    },
    "n_songs": 24, "n_artists": 12, "C": 10.0, "untrained": 0.5, "stopped_early": False, "is_better": True,
    "split": {part: {"songs": 8, "artists": 4} for part in ("train", "validation", "test")},
    "path": [{"C": 10.0, "quality": math.nan, "gap": 0.1, "n_cuts": 3, "rank": 2}],
    "leads": {"auc": {"before": 0.5, "after": 0.6, "mean": 0.1, "low": 0.05, "high": 0.2}},
    "hubness": {"before": 1.0, "after": 0.5},
    "sources": [{"name": "tags", "dimensions": 3, "share": 0.4, "alone": math.nan}],
    "changed": [{"query": 1, "before": [2], "after": [3]}],
}  # fmt: skip
"""A report as training writes it."""


def score_found(snapshot, queries, database, relevance) -> dict[str, float]:
    """Score rankings by the distances that search computes for each query.

    `relevance` covers queries and database; it can be a list of pairs (relevant, irrelevant) of rows.
    """
    if isinstance(relevance, list):
        relevant, irrelevant = zip(*relevance, strict=True)
        relevance = Relevance.from_lists(relevant, len(database), irrelevant=irrelevant, outside=True)
    X = snapshot.X.astype(np.float64)
    distances = np.stack(
        [snapshot.adjust_distances(X[q], np.linalg.norm(X[database] - X[q], axis=1), database) for q in queries]
    )
    return {name: float(np.nanmean(scores)) for name, scores in distance_scores(distances, relevance, 10).items()}


def write_styles(folder: Path, artists: int = 15, n_songs: int = 2, seconds: float = 2.0) -> Path:
    """Write artists of one kind of sound each, with the kind as their genre; songs of some seconds, in FLAC."""
    for a in range(artists):
        kind = KINDS[a % len(KINDS)]
        for s in range(n_songs):
            write_song(
                folder / f"Artist {a}" / f"{s} {kind}.flac",
                kind,
                seed=100 * a + s,
                seconds=seconds,
                title=f"Song {a} {s}",
                artist=f"Artist {a}",
                genre=f"Genre {kind}",
            )
    return folder


class Watcher:
    """A progress that records its messages, asks to stop after some points, and cancels at a message."""

    def __init__(self, enough_after=None, stop_at=None):
        self.points, self.messages, self.shares, self.seconds_left = [], [], [], []
        self._enough_after, self._stop_at = enough_after, stop_at

    def __call__(self, message, done=0, total=0, /, seconds_left=None, **_):
        self.messages.append(message)
        self.shares.append(done / total if total else 0.0)
        self.seconds_left.append(seconds_left)
        if self._stop_at is not None and self._stop_at in message:
            raise Canceled

    def trace(self, point):
        json.dumps(point)
        self.points.append(point)

    def is_enough(self):
        return self._enough_after is not None and len(self.points) >= self._enough_after


def hush(*_, **_facts):
    """Ignore all messages."""


def tag_by_kind(library):
    """Tag each song with its kind of sound."""
    library.add_tags([{"song_id": s.id, "tag": s.genre.lower(), "weight": 1.0} for s in library.songs()])
