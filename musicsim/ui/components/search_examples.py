"""The songs that a search goes by beside the first: one to be like it, or less like it."""

from collections.abc import Sequence

import numpy as np

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.keys import CHOSEN, Key
from musicsim.ui.base.uploads import EXAMPLE

MAX_EXAMPLES = 25
"""That are searched with at once."""
SIGNED: Key[tuple[str, dict[int, int]]] = Key(
    "search_signed",
    lambda: ("", {}),
    "what is searched with, and by the ids of songs beside it 1 for those to be like, -1 for those not to",
    per_library=True,
    is_kept=True,
)

PART: Key[tuple[str, tuple[float, float] | None]] = Key(
    "search_part",
    lambda: ("", None),
    "what is searched with, and the seconds of it that count",
    per_library=True,
    is_kept=True,
)


def signed(name: str) -> dict[int, int]:
    """Songs beside what is searched with under a name: 1 for those to be like, -1 for those not to."""
    of, songs = SIGNED.get()
    return songs if of == name else {}


def chosen_part(name: str) -> tuple[float, float] | None:
    """The seconds that count of what is searched with under a name; None for all."""
    of, part = PART.get()
    return part if of == name else None


def search_like(now: Snapshot, ids: Sequence[int]) -> None:
    """Search with some songs, of many some that are spread evenly; for callbacks and before a switch of pages."""
    if len(ids):
        first, *others = some_of(ids, MAX_EXAMPLES)
        CHOSEN.set(first)
        EXAMPLE.set(None)
        SIGNED.set((f"{now.library.name}:{first}", dict.fromkeys(others, 1)))


def some_of(ids: Sequence[int], n: int) -> list[int]:
    """At most so many ids, spread evenly."""
    return [int(ids[i]) for i in np.unique(np.linspace(0, len(ids) - 1, n).astype(int))]
