"""Leaves in flat arrays: lists of rows with their codes, how they are kept in a file, and tidied up as rows come.

- ``leaves``, int64 (n_leaves, 4): first slot, number of rows, room, parent.
- ``items``, int32 (n_slots,): the row in each slot; -1 in slots that are not used.
- ``codes``, int8 (n_slots * size,): what a leaf keeps of its rows, in units of ``step``, see
  :mod:`musicsim.search._code_kernels`. Empty where row numbers are enough.

Memory: 4 bytes a slot, with codes up to d + 11. Slots are the rows of all leaves, rounded up to whole blocks.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from musicsim._arrays import Float32Array, Int8Array, Int32Array, Int64Array, IntegerArray
from musicsim.search import _code_kernels as kernels

SMALLEST = float(np.finfo(np.float32).tiny)

_UINT64 = (1 << 64) - 1
_META = "trees.json"
_FORMAT = 3
# Slots to those in use, above which the others are left out.
_LOOSEST = 1.5


@dataclass(slots=True, kw_only=True)
class Leaves:
    """The arrays; see the module. Those that grow have room at their end, `sizes` says how much counts."""

    PARTS: ClassVar[dict[str, type[np.generic]]] = {"leaves": np.int64, "items": np.int32, "codes": np.int8}
    """Arrays that are kept, and their types."""

    leaves: Int64Array
    items: Int32Array
    codes: Int8Array
    step: float = 1.0
    seeds: tuple[int, ...] = ()
    sizes: Int64Array = field(default_factory=lambda: np.zeros(3, np.int64))
    """Inner nodes, leaves and slots in use."""
    copies: float = 1.0
    """Times that a tree held a row when it was grown."""
    n_held: int = field(init=False)
    """Rows of all leaves."""

    def __post_init__(self) -> None:
        self.n_held = int(self.leaves[: self.n_leaves, 1].sum())

    @property
    def code_size(self) -> int:
        """Bytes of a code; both arrays grow by the same factor."""
        return len(self.codes) // max(len(self.items), 1)

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees."""
        return int(self.sizes[1])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(getattr(self, part).nbytes for part in self.PARTS)

    def depth(self) -> int:
        """Steps on the longest way from a root to a leaf."""
        raise NotImplementedError

    def tidy(self) -> None:
        """After rows were added: leave out the slots that no leaf uses any more, where they are many."""
        if self.sizes[2] > _LOOSEST * self.leaves[: self.n_leaves, 2].sum():
            self._compact()

    def _compact(self) -> None:
        leaves = self.leaves[: self.n_leaves]
        n_blocks = leaves[:, 2] // kernels.BLOCK
        ends = np.cumsum(n_blocks)
        first = leaves[:, 0] // kernels.BLOCK - (ends - n_blocks)
        blocks = np.repeat(first, n_blocks) + np.arange(n_blocks.sum())
        n_slots, size = int(self.sizes[2]), self.code_size
        self.items = self.items[:n_slots].reshape(-1, kernels.BLOCK)[blocks].ravel()
        if len(self.codes):
            self.codes = self.codes[: n_slots * size].reshape(-1, kernels.BLOCK * size)[blocks].ravel()
        leaves[:, 0] = (ends - n_blocks) * kernels.BLOCK
        self.sizes[2] = len(self.items)

    def save(self, folder: Path) -> None:
        """Write the arrays as ``.npy`` files and their meaning as JSON into a folder."""
        n_inner, n_leaves, n_slots = self.sizes.tolist()
        counted = {"nodes": n_inner, "leaves": n_leaves, "items": n_slots, "codes": n_slots * self.code_size}
        for part in self.PARTS:
            array = getattr(self, part)
            np.save(folder / f"{part}.npy", array[: counted.get(part, len(array))], allow_pickle=False)
        meta = {
            "format": _FORMAT,
            "step": self.step,
            "copies": self.copies,
            "seeds": self.seeds,
            "sizes": self.sizes.tolist(),
        }
        (folder / _META).write_text(json.dumps(meta), encoding="utf-8")

    def fits(self, d: int, n: int) -> bool:
        """Whether every number leads to a leaf, or to one of n rows of width d; compiled loops follow it blindly."""
        raise NotImplementedError

    def _is_of_its_types(self) -> bool:
        """Whether arrays and numbers are of the types that the kernels were compiled for."""
        return (
            all(getattr(self, part).dtype == kind for part, kind in self.PARTS.items())
            and self.sizes.shape == (3,)
            and all(type(seed) is int and 0 <= seed <= _UINT64 for seed in self.seeds)
            and 0 < self.step < np.inf
            and 1 <= self.copies < np.inf
        )

    def _lie_in_their_slots(self) -> bool:
        first, size, room = self.leaves.T[:3]
        n_slots = int(self.sizes[2])
        return within(first, 0, n_slots) and bool(((size >= 0) & (size <= room) & (first + room <= n_slots)).all())

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map the arrays of a folder into memory; what is changed stays in this process.

        Raises ValueError if the files are of another format.
        """
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
            raise ValueError(f"{folder / _META} is of another version: build the index again.")
        arrays = {
            part: np.load(folder / f"{part}.npy", mmap_mode="c", allow_pickle=False).view(np.ndarray)
            for part in cls.PARTS
        }
        return cls(
            **arrays,
            step=meta["step"],
            seeds=tuple(meta["seeds"]),
            sizes=np.array(meta["sizes"], np.int64),
            copies=meta["copies"],
        )


def encoded(Y: Float32Array, items: Int32Array, step: float, threads: int) -> Int8Array:
    """Codes of all slots, int8 (n_slots * size,), on several threads."""
    size = kernels.BLOCK * max(1, -(-len(items) // (kernels.BLOCK * 4 * threads)))
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    with ThreadPoolExecutor(threads) as pool:
        coded = list(pool.map(lambda part: kernels.encode(Y, part, np.float32(step)), parts))
    return np.concatenate(coded) if coded else np.empty(0, np.int8)


def step_to(largest: float) -> float:
    """The unit in which codes reach as far as a number does."""
    # of rows that are all equal it is as small as can be: codes of all others are cut
    return float(np.float32(max(largest / 127, SMALLEST)))


def within(numbers: IntegerArray, low: int, end: int) -> bool:
    """Whether all are `low` at least and below `end`."""
    return not numbers.size or (int(numbers.min()) >= low and int(numbers.max()) < end)
