"""Tables that group bit codes into buckets: build, save and probe them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from musicsim._arrays import BoolArray, Int64Array, Uint8Array, Uint32Array, Uint64Array
from musicsim._npy import save_array
from musicsim.search import _hamming_kernels as kernels
from musicsim.search._rows import read_only

Heaps = tuple[Int64Array, Int64Array]
"""Heaps of the nearest codes, one per query, and their sizes; see :func:`musicsim.search._hamming_kernels.scan`."""

_SAVED = ("rows", "offsets", "ids", "codes")
# Mean number of codes per bucket. If buckets hold codes, comparing a code costs almost nothing compared with opening a
# bucket. If they hold only ids, the two costs are similar.
_PER_BUCKET, _PER_BUCKET_OF_IDS = 16, 1
_NARROWEST, _WIDEST = 8, 24
_RINGS = 5  # Maximum number of set bits in a mask of a wide table; probing more buckets takes longer than a scan
_ALL_RINGS_BELOW = 12
# Nanoseconds to open a bucket and to compare a code in the bucket, for buckets of codes and for buckets of ids
# (measured on AMD EPYC).
_COSTS, _COSTS_OF_IDS = (60, 2), (100, 15)


@dataclass(slots=True)
class BucketTables:
    """Tables of buckets: each table sorts all codes by some of their bits.

    - ``rows``, uint64 (n, n_words): the codes in the order of their ids; its shape is (0, 1) if a code is one word.
    - ``offsets``, uint32 (n_tables, 2 ** width + 1): first slot of each bucket.
    - ``ids``, uint32 (n_tables, n): the id in each slot; ascending within a bucket.
    - ``codes``, uint64 (n_tables, n): the code in each slot; its shape is (n_tables, 0) if a code has several words.
    - ``starts``, ``widths``, int64 (n_tables,): first bit and number of bits of each table; the first is the widest.
    - ``masks``, uint32: numbers below ``2 ** widths[0]``, sorted by their number of set bits.
    - ``rings``, int64 (n_rings + 1,): offset of each ring in ``masks``; ring i contains the masks with i set bits.

    Memory per code: 12 bytes per table for a code of one word; for a longer code, 8 bytes per word and 4 per table.
    Each bucket takes another 4 bytes.
    """

    n_bits: int
    rows: Uint64Array
    offsets: Uint32Array
    ids: Uint32Array
    codes: Uint64Array
    starts: Int64Array = field(init=False)
    widths: Int64Array = field(init=False)
    masks: Uint32Array = field(init=False)
    rings: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        self.starts, self.widths = _split_bits(self.n_bits, len(self.offsets))
        self.masks, self.rings = _ring_masks(int(self.widths[0]))
        for name in ("offsets", "ids", "codes"):
            setattr(self, name, read_only(getattr(self, name)))

    @classmethod
    def build(cls, rows: Uint64Array, n_bits: int) -> Self:
        """Sort C-contiguous uint64 codes (n, n_words) into buckets; only the first `n_bits` bits are used."""
        n, n_words = rows.shape
        per_bucket = _PER_BUCKET if n_words == 1 else _PER_BUCKET_OF_IDS
        width = np.clip(np.log2(max(n, 1) / per_bucket), _NARROWEST, _WIDEST)
        n_tables = int(np.ceil(n_bits / width))
        starts, widths = _split_bits(n_bits, n_tables)
        offsets = np.zeros((n_tables, 2 ** widths[0] + 1), np.uint32)
        ids = np.empty((n_tables, n), np.uint32)
        codes = np.empty((n_tables, n if n_words == 1 else 0), np.uint64)
        for table, (start, bits) in enumerate(zip(starts, widths, strict=True)):
            kernels.fill_table(rows, start, bits, offsets[table, : 2**bits + 1], ids[table], codes[table])
        return cls(n_bits, rows if n_words > 1 else rows[:0].copy(), offsets, ids, codes)

    @property
    def n_codes(self) -> int:
        """Number of codes in each table."""
        return self.ids.shape[1]

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(getattr(self, name).nbytes for name in _SAVED)

    def probe(
        self, queries: Uint64Array, bounds: Int64Array, heaps: Heaps, shown: Uint8Array, budget: float
    ) -> tuple[Int64Array, BoolArray]:
        """Search the buckets, with a `budget` in nanoseconds; see :func:`musicsim.search._hamming_kernels.probe`."""
        costs = np.array(_COSTS if self.codes.size else _COSTS_OF_IDS)
        return kernels.probe(
            self.rows, self.starts, self.widths, self.offsets, self.ids, self.codes, self.masks, self.rings,
            queries, bounds, *heaps, shown, costs, int(budget),
        )  # fmt: skip

    def save(self, folder: Path) -> None:
        for name in _SAVED:
            save_array(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path, n_bits: int) -> Self:
        """Map the arrays of a folder into memory; raise ValueError if they do not fit together."""
        arrays: dict[str, Any] = {
            name: np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False).view(np.ndarray) for name in _SAVED
        }
        kinds = [(array.dtype, array.ndim) for array in arrays.values()]
        if kinds != [(np.uint64, 2), (np.uint32, 2), (np.uint32, 2), (np.uint64, 2)]:
            raise ValueError("An array has the wrong type or number of dimensions.")
        if not 1 <= len(arrays["offsets"]) <= n_bits:
            raise ValueError("The number of tables does not match the number of bits.")
        tables = cls(n_bits, **arrays)
        if not tables._fits():
            raise ValueError("The arrays do not fit together.")
        return tables

    def _fits(self) -> bool:
        """Return whether every stored number points to a valid code; the kernels do not check this."""
        (n_rows, n_words), n, n_tables = self.rows.shape, self.n_codes, len(self.widths)
        holds_codes = n_words == 1
        if n_words != -(-self.n_bits // 64) or n_rows != (0 if holds_codes else n) or len(self.ids) != n_tables:
            return False
        if self.offsets.shape[1] != 2 ** self.widths[0] + 1 or self.codes.shape != (n_tables, n if holds_codes else 0):
            return False
        for offsets, width in zip(self.offsets, self.widths, strict=True):
            used = offsets[: 2**width + 1]
            if used[0] != 0 or used[-1] != n or (used[1:] < used[:-1]).any():
                return False
        return not self.ids.size or int(self.ids.max()) < n


def _split_bits(n_bits: int, n_tables: int) -> tuple[Int64Array, Int64Array]:
    """Return each table's first bit and number of bits. Bits are divided evenly, and the widest table is first."""
    widths = np.full(n_tables, n_bits // n_tables)
    widths[: n_bits % n_tables] += 1
    return np.cumsum(widths) - widths, widths


def _ring_masks(width: int) -> tuple[Uint32Array, Int64Array]:
    """Return numbers of `width` bits, sorted by their number of set bits (the ring), and each ring's offset."""
    rings = [np.zeros(1, np.uint32)]
    for _ in range(width if width <= _ALL_RINGS_BELOW else _RINGS):
        last = rings[-1]
        # each number occurs once: the added bit is above those already set
        rings.append(np.concatenate([last[last < 1 << bit] | np.uint32(1 << bit) for bit in range(width)]))
    return np.concatenate(rings), np.cumsum([0, *(len(ring) for ring in rings)])
