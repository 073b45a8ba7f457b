"""Additional examples in a search, and the selected part of the first example."""

from collections.abc import Sequence

import numpy as np

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.keys import CHOSEN, Key
from musicsim.ui.base.uploads import EXAMPLE

MAX_EXAMPLES = 25
SIGNED: Key[tuple[str, dict[int, int]]] = Key(
    "search_signed", lambda: ("", {}), "search name, and a dict from song id to 1 (more like this) or -1 (less like)",
    per_library=True, is_kept=True,
)  # fmt: skip
PART: Key[tuple[str, tuple[float, float] | None]] = Key(
    "search_part", lambda: ("", None), "search name, and the selected range in seconds", per_library=True, is_kept=True
)


def get_examples(search: str) -> dict[int, int]:
    """Return a search's additional examples: a dict from song id to 1 (more like this) or -1 (less like this)."""
    name, examples = SIGNED.get()
    return examples if name == search else {}


def get_part(search: str) -> tuple[float, float] | None:
    """Return the selected range of the first example in seconds, or None for the whole example."""
    name, part = PART.get()
    return part if name == search else None


def search_like(snapshot: Snapshot, ids: Sequence[int]) -> None:
    """Search with songs as examples, evenly sampled if there are many; for callbacks, and before switching pages."""
    if len(ids):
        first, *others = sample_evenly(ids, MAX_EXAMPLES)
        CHOSEN.set(first)
        EXAMPLE.set(None)
        SIGNED.set((f"{snapshot.library.name}:{first}", dict.fromkeys(others, 1)))


def sample_evenly(ids: Sequence[int], n: int) -> list[int]:
    """Return at most `n` of the ids, evenly spaced."""
    return [int(ids[i]) for i in np.unique(np.linspace(0, len(ids) - 1, n).astype(int))]
