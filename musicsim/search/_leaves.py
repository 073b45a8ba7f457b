"""Leaves in flat arrays: the rows in each leaf and their codes, with saving and compaction.

- ``leaves``, int64 (n_leaves, 4): first slot, number of rows, number of slots, parent.
- ``items``, int32 (n_slots,): the row in each slot; -1 in unused slots.
- ``codes``, int8 (n_slots * size,): codes of the rows in units of ``step``, see :mod:`musicsim.search.code_kernels`. It
  is empty if the leaves hold only row numbers.

Memory per slot: 4 bytes, or up to d + 11 bytes with codes. A leaf has one slot per row, rounded up to full blocks.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from musicsim._arrays import Float32Array, Int8Array, Int32Array, Int64Array, IntegerArray
from musicsim._npy import save_array
from musicsim.search.code_kernels import BLOCK

SMALLEST = float(np.finfo(np.float32).tiny)

UINT64 = (1 << 64) - 1
_META = "trees.json"
_FORMAT = 3
_BLOCK_ROWS = 16_384
_LOOSEST = 1.5  # Arrays are compacted if they have more than this many slots per used slot


@dataclass(slots=True, kw_only=True)
class Leaves:
    """Leaves as arrays with spare room at the end; `sizes` contains the lengths in use."""

    PARTS: ClassVar[dict[str, type[np.generic]]] = {"leaves": np.int64, "items": np.int32, "codes": np.int8}
    """Saved arrays and their types."""

    leaves: Int64Array
    items: Int32Array
    codes: Int8Array
    step: float = 1.0
    seeds: tuple[int, ...]
    sizes: Int64Array
    """Numbers of inner nodes, leaves, and slots in use."""
    copies: float = 1.0
    """Mean number of copies of a row in each tree when the tree was grown."""
    n_held: int = field(init=False)
    """Number of rows in all leaves."""

    def __post_init__(self) -> None:
        self.n_held = int(self.leaves[: self.n_leaves, 1].sum())

    @property
    def code_size(self) -> int:
        """Size of a code in bytes; `codes` and `items` grow by the same factor."""
        return len(self.codes) // max(len(self.items), 1)

    @property
    def n_leaves(self) -> int:
        return int(self.sizes[1])

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(getattr(self, part).nbytes for part in self.PARTS)

    def fits(self, d: int, n: int) -> bool:
        """Return whether every stored number points to a leaf, or to one of n rows of width d."""
        raise NotImplementedError

    def compact(self) -> None:
        """Remove slots that no leaf uses anymore, if there are many. Call this after adding rows."""
        leaves = self.leaves[: self.n_leaves]
        if self.sizes[2] <= _LOOSEST * leaves[:, 2].sum():
            return
        n_blocks = leaves[:, 2] // BLOCK
        ends = np.cumsum(n_blocks)
        first = leaves[:, 0] // BLOCK - (ends - n_blocks)
        blocks = np.repeat(first, n_blocks) + np.arange(n_blocks.sum())
        n_slots, size = int(self.sizes[2]), self.code_size
        self.items = self.items[:n_slots].reshape(-1, BLOCK)[blocks].ravel()
        if len(self.codes):
            self.codes = self.codes[: n_slots * size].reshape(-1, BLOCK * size)[blocks].ravel()
        leaves[:, 0] = (ends - n_blocks) * BLOCK
        self.sizes[2] = len(self.items)

    def save(self, folder: Path) -> None:
        """Write the arrays as ``.npy`` files, and their description as JSON."""
        n_inner, n_leaves, n_slots = self.sizes.tolist()
        used = {"nodes": n_inner, "leaves": n_leaves, "items": n_slots, "codes": n_slots * self.code_size}
        for part in self.PARTS:
            save_array(folder / f"{part}.npy", getattr(self, part)[: used.get(part)])
        meta = {name: getattr(self, name) for name in ("step", "copies", "seeds")}
        content = json.dumps({"format": _FORMAT, "sizes": self.sizes.tolist(), **meta})
        (folder / _META).write_text(content, encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map the arrays of a folder into memory; changes are not written to the folder."""
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
            raise ValueError(f"{folder / _META} has a different version; rebuild the index.")
        arrays = {
            part: np.load(folder / f"{part}.npy", mmap_mode="c", allow_pickle=False).view(np.ndarray)
            for part in cls.PARTS
        }
        sizes = np.array(meta["sizes"], np.int64)
        return cls(**arrays, step=meta["step"], seeds=tuple(meta["seeds"]), sizes=sizes, copies=meta["copies"])

    def _has_valid_types(self) -> bool:
        """Return whether arrays and numbers have the types that the kernels were compiled for."""
        return (
            all(getattr(self, part).dtype == dtype for part, dtype in self.PARTS.items())
            and self.sizes.shape == (3,)
            and all(type(seed) is int and 0 <= seed <= UINT64 for seed in self.seeds)
            and 0 < self.step < np.inf
            and 1 <= self.copies < np.inf
        )

    def _has_valid_slots(self) -> bool:
        first, size, room = self.leaves.T[:3]
        n_slots = int(self.sizes[2])
        return all_within(first, 0, n_slots) and bool(((size >= 0) & (size <= room) & (first + room <= n_slots)).all())


def find_code_step(Y: Float32Array) -> float:
    """Return the smallest step with which codes can represent all rows (n, width)."""
    maxima = (float(np.abs(Y[i : i + _BLOCK_ROWS]).max()) for i in range(0, len(Y), _BLOCK_ROWS))
    return find_step(max(maxima, default=0.0))


def find_step(largest: float) -> float:
    """Return the smallest step for `largest`. If all rows are equal, it is tiny, and new rows are clipped."""
    return float(np.float32(max(largest / 127, SMALLEST)))


def all_within(numbers: IntegerArray, low: int, end: int) -> bool:
    """Return whether all numbers are at least `low` and below `end`."""
    return not numbers.size or (int(numbers.min()) >= low and int(numbers.max()) < end)
