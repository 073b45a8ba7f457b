"""Tables of buckets over bit codes: what they hold, how they are built, kept in a folder, and asked."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from musicsim._arrays import BoolArray, Int64Array, Uint8Array, Uint32Array, Uint64Array
from musicsim.search import _hamming_kernels as kernels
from musicsim.search._rows import read_only

Heaps = tuple[Int64Array, Int64Array]
"""The nearest of each query and how many they are; see :func:`musicsim.search._hamming_kernels.scan`."""

_KEPT = ("rows", "offsets", "ids", "codes")

# Codes of a bucket, if they were spread evenly. Where codes lie in their buckets, comparing with one costs next to
# nothing beside looking into a bucket; where only their ids do, as much.
_A_BUCKET, _A_BUCKET_OF_IDS = 16, 1
_NARROWEST, _WIDEST = 8, 24

# Numbers of bits whose masks are made; of wide tables only the first are worth it.
_RINGS = 5
_ALL_RINGS_BELOW = 12

# Nanoseconds to look into a bucket and at a code there (measured, AMD EPYC), by whether codes lie in their buckets.
_COSTS, _COSTS_OF_IDS = (60, 2), (100, 15)


@dataclass(slots=True)
class Tables:
    """Every code in a bucket of each table, by bits that are the table's own.

    - ``rows``, uint64 (n, n_words): the codes by id; (0, 1) where they are one word.
    - ``offsets``, uint32 (n_tables, 2 ** width + 1): first place of each bucket.
    - ``ids``, uint32 (n_tables, n): what is in each place; within a bucket the least id first.
    - ``codes``, uint64 (n_tables, n): the codes in their places, of one word only; else (n_tables, 0).

    Memory for each code: 12 bytes a table where it is one word, else 8 a word and 4 a table; 4 bytes a bucket.
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
        self.starts, self.widths = _parts(self.n_bits, len(self.offsets))
        self.masks, self.rings = _rings(int(self.widths[0]))
        for name in ("offsets", "ids", "codes"):
            setattr(self, name, read_only(getattr(self, name)))

    @classmethod
    def build(cls, rows: Uint64Array, n_bits: int) -> Self:
        """Sort codes into buckets.

        Parameters
        ----------
        rows : uint64 ndarray of shape (n, n_words), C-contiguous
        n_bits : int
            Bits of each that count.
        """
        n, n_words = rows.shape
        usual = _A_BUCKET if n_words == 1 else _A_BUCKET_OF_IDS
        width = np.clip(np.log2(max(n, 1) / usual), _NARROWEST, _WIDEST)
        n_tables = int(np.ceil(n_bits / width))
        starts, widths = _parts(n_bits, n_tables)
        offsets = np.zeros((n_tables, 2 ** widths[0] + 1), np.uint32)
        ids = np.empty((n_tables, n), np.uint32)
        codes = np.empty((n_tables, n if n_words == 1 else 0), np.uint64)
        for table, (start, bits) in enumerate(zip(starts, widths, strict=True)):
            kernels.fill_table(rows, start, bits, offsets[table, : 2**bits + 1], ids[table], codes[table])
        return cls(n_bits, rows if n_words > 1 else rows[:0].copy(), offsets, ids, codes)

    @property
    def n_codes(self) -> int:
        """Codes in each table."""
        return self.ids.shape[1]

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(getattr(self, name).nbytes for name in _KEPT)

    def probe(
        self, queries: Uint64Array, bounds: Int64Array, heaps: Heaps, shown: Uint8Array, budget: float
    ) -> tuple[Int64Array, BoolArray]:
        """Look into buckets; `budget` in nanoseconds. See :func:`musicsim.search._hamming_kernels.probe`."""
        costs = np.array(_COSTS if self.codes.size else _COSTS_OF_IDS)
        return kernels.probe(
            self.rows, self.starts, self.widths, self.offsets, self.ids, self.codes, self.masks, self.rings,
            queries, bounds, *heaps, shown, costs, int(budget),
        )  # fmt: skip

    def save(self, folder: Path) -> None:
        """Write the arrays as ``.npy`` files into a folder."""
        for name in _KEPT:
            np.save(folder / f"{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, n_bits: int) -> Self:
        """Map the arrays of a folder into memory. Raises ValueError if they do not fit each other."""
        arrays: dict[str, Any] = {
            name: np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False).view(np.ndarray) for name in _KEPT
        }
        kinds = [(arrays[name].dtype, arrays[name].ndim) for name in _KEPT]
        if kinds != [(np.uint64, 2), (np.uint32, 2), (np.uint32, 2), (np.uint64, 2)]:
            raise ValueError("arrays of another kind")
        if not 1 <= len(arrays["offsets"]) <= n_bits:
            raise ValueError("tables of another number of bits")
        tables = cls(n_bits, **arrays)
        if not tables._fits():
            raise ValueError("arrays that do not fit each other")
        return tables

    def _fits(self) -> bool:
        """Whether every number leads to one of the codes; the kernels follow them blindly."""
        (n_rows, n_words), n, n_tables = self.rows.shape, self.n_codes, len(self.widths)
        lie_sorted = n_words == 1
        if n_words != -(-self.n_bits // 64) or n_rows != (0 if lie_sorted else n) or len(self.ids) != n_tables:
            return False
        if self.offsets.shape[1] != 2 ** self.widths[0] + 1:
            return False
        if self.codes.shape != (n_tables, n if lie_sorted else 0):
            return False
        for offsets, width in zip(self.offsets, self.widths, strict=True):
            used = offsets[: 2**width + 1]
            if used[0] != 0 or used[-1] != n or (used[1:] < used[:-1]).any():
                return False
        return not self.ids.size or int(self.ids.max()) < n


def _parts(n_bits: int, n_tables: int) -> tuple[Int64Array, Int64Array]:
    """First bit and number of bits of each table: all bits, shared out evenly, the widest first."""
    widths = np.full(n_tables, n_bits // n_tables)
    widths[: n_bits % n_tables] += 1
    return np.cumsum(widths) - widths, widths


def _rings(width: int) -> tuple[Uint32Array, Int64Array]:
    """Numbers of `width` bits by how many of them are set, and where those of each number begin."""
    last = width if width <= _ALL_RINGS_BELOW else _RINGS
    rings = [np.zeros(1, np.uint32)]
    for _ in range(last):
        fewer = rings[-1]
        # each number once: the bit that is added is above those it has
        rings.append(np.concatenate([fewer[fewer < 1 << bit] | np.uint32(1 << bit) for bit in range(width)]))
    return np.concatenate(rings), np.cumsum([0, *(len(ring) for ring in rings)])
