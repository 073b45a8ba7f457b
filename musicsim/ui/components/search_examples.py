"""Further examples of a search, and the selected part of the first one."""

from collections.abc import Sequence

import numpy as np

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.keys import CHOSEN, Key
from musicsim.ui.base.uploads import EXAMPLE

MAX_EXAMPLES = 25
SIGNED: Key[tuple[str, dict[int, int]]] = Key(
    "search_signed", lambda: ("", {}), "name of the search; 1 (more like) or -1 (less like) by song id",
    per_library=True, is_kept=True,
)  # fmt: skip
PART: Key[tuple[str, tuple[float, float] | None]] = Key(
    "search_part", lambda: ("", None), "name of the search, and the selected seconds", per_library=True, is_kept=True
)


def get_examples(search: str) -> dict[int, int]:
    """Return the further examples of a search: 1 (more like) or -1 (less like) by song id."""
    name, examples = SIGNED.get()
    return examples if name == search else {}


def get_part(search: str) -> tuple[float, float] | None:
    """Return the selected seconds of the first example; None for all."""
    name, part = PART.get()
    return part if name == search else None


def search_like(snapshot: Snapshot, ids: Sequence[int]) -> None:
    """Search with some songs, or with an even sample of many; for callbacks and before a switch of pages."""
    if len(ids):
        first, *others = sample_evenly(ids, MAX_EXAMPLES)
        CHOSEN.set(first)
        EXAMPLE.set(None)
        SIGNED.set((f"{snapshot.library.name}:{first}", dict.fromkeys(others, 1)))


def sample_evenly(ids: Sequence[int], n: int) -> list[int]:
    """Return at most `n` of the ids, at equal distances."""
    return [int(ids[i]) for i in np.unique(np.linspace(0, len(ids) - 1, n).astype(int))]
