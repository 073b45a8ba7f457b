"""Evaluation by a fixed split: its test songs search its training songs."""

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import load_hooks
from musicsim.library import Library


def split_rows(snapshot: Snapshot, name: str) -> tuple[Int64Array, Int64Array]:
    """Return the rows of a split's test and training songs, ascending; duplicates of training songs are not test songs.

    Raises NotFoundError if the split does not exist, ModelError if one of its parts lacks a song with a vector.
    """
    parts = snapshot.library.splits.get(name)
    rows = {
        part: _rows_of(snapshot, [song_id for song_id, own in parts.items() if own == part])
        for part in ("train", "test")
    }
    test = np.setdiff1d(rows["test"], rows["train"])
    if not len(test) or not len(rows["train"]):
        raise ModelError(f"the split {name!r} lacks test or training songs here: its files are missing.")
    return test, rows["train"]


def _rows_of(snapshot: Snapshot, ids: list[int]) -> Int64Array:
    rows = np.unique(snapshot.rows_of(ids))
    return rows[rows >= 0]


def list_known_faults(library: Library) -> list[str]:
    """Return known faults of the songs' labels, from the hook ``known_faults``, ``function(library) -> list[str]``."""
    return [fault for hook in load_hooks("known_faults") for fault in hook(library)]
