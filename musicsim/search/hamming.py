"""Exact neighbours of bit codes by Hamming distance: a scan of all codes, or tables of buckets."""

from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Int32Array, Int64Array, Uint8Array, Uint32Array, Uint64Array
from musicsim._checks import check_choice
from musicsim.hashing.packing import checked_words
from musicsim.search import _hamming_kernels as kernels
from musicsim.search._folders import DAMAGED, UNREADABLE, read_meta, replaced, write_meta
from musicsim.search._hamming_tables import Tables
from musicsim.search._rows import Index, ask_parts, check_n_jobs, read_only

METHODS = ("scan", "balls")

_FORMAT = 1
_META_KEYS = ("kind", "format", "options", "shape", "bits")

_MAX_BITS = (1 << kernels.DISTANCE_BITS) - 1
_MAX_CODES = (1 << kernels.ID_BITS) - 2

_PART_QUERIES = 1024  # whose heaps are held at once

# Nanoseconds that a scan takes for a code, and for 32 bits of it (measured, AMD EPYC).
_SCAN_CODE, _SCAN_PLANE = 0.04, 0.035

# Codes that came after the tables were built are scanned; more than this share of all, and they are rebuilt.
_MAX_ADDED_SHARE = 1 / 16
_ALWAYS_ALLOWED_ADDED = 4096

HammingAnswers = tuple[Int32Array, Int64Array]


class HammingIndex(Index):
    """Exact neighbours of bit codes; equal distances by the lower id.

    Parameters
    ----------
    method : "scan" or "balls"
        "scan" compares with every code. "balls" looks into buckets of codes that share some bits with the query or
        differ in few of them, and falls back on the scan where more buckets than that is worth might hold answers.
        Both give the same answers.
    n_bits : int, optional
        Bits of a code that count, the lowest of the first word first; by default all, 64 a word.
    n_jobs : int or None
        Threads that answer when many queries come at once: None is 1, -1 one a core.

    Attributes
    ----------
    n_samples_ : int
        Codes ever given; ids are below it.
    n_features_in_ : int
        Words of a code.
    n_bits_ : int
    nbytes_ : int
        All memory; what was handed to :meth:`fit` is copied and not held. "scan": 4 bytes for each 32 bits of a
        code, 40 MB for ten million codes of 32 bits, 320 MB of 256. "balls" besides: 12 bytes a table for each code
        of up to 64 bits; for each longer one 8 a word and 4 a table; 4 a bucket. In all, for ten million codes: 280 MB
        of 32 bits, 560 MB of 64, 1.3 GB of 256. While tables are built, a copy of the codes besides.

    Notes
    -----
    WWW 2012 (Nair, Mahajan, Sundararajan), 2.1. The scan sums the differing bits of 64 codes at once and looks at
    single ones only where the least of a tile is below the k-th nearest so far; long codes are judged by their first
    64 bits as long as that rules most tiles out. Several queries share one pass. "balls" is multi-index hashing
    (Norouzi, Punjani, Fleet, CVPR 2012): each table has some bits of the code as its bucket numbers.
    """

    _DISTANCE = np.int32
    _planes: Uint32Array
    _tables: Tables | None

    def __init__(self, method: str = "scan", *, n_bits: int | None = None, n_jobs: int | None = -1) -> None:
        self.method, self.n_bits, self.n_jobs = method, n_bits, n_jobs

    def fit(self, codes: npt.ArrayLike, y: None = None) -> Self:
        """Take the codes to search in.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_samples, n_words)
        y : ignored

        Raises
        ------
        ValueError
            If `codes` is not of that type and shape, has bits beyond `n_bits`, or an option is out of range.
        """
        check_choice("method", self.method, METHODS)
        check_n_jobs(self.n_jobs)
        rows = checked_codes(codes, "codes", self.n_bits)
        self.n_features_in_ = rows.shape[1]
        self.n_bits_ = 64 * rows.shape[1] if self.n_bits is None else int(self.n_bits)
        self.n_samples_ = 0
        self._planes = np.zeros((-(-self.n_bits_ // 32), 0), np.uint32)
        self._shown = np.empty(0, np.uint8)  # of no code while none was removed
        self._put(rows)
        self._tables = None if self.method == "scan" else Tables.build(self._rows(), self.n_bits_)
        return self

    def add(self, codes: npt.ArrayLike) -> Int64Array:
        """Add codes after :meth:`fit`.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_new, n_words)

        Returns
        -------
        int64 ndarray of shape (n_new,), the ids

        Raises
        ------
        ValueError
            If `codes` has another type or shape than those of :meth:`fit`.
        """
        self._check_is_fitted("n_samples_")
        rows = checked_codes(codes, "codes", self.n_bits_)
        first = self.n_samples_
        self._put(rows)
        if len(self._shown):
            self._shown = np.concatenate([self._shown, np.ones(len(rows), np.uint8)])
        if self._tables is not None:
            n_added = self.n_samples_ - self._tables.n_codes
            if n_added > max(_ALWAYS_ALLOWED_ADDED, _MAX_ADDED_SHARE * self.n_samples_):
                self._tables = Tables.build(self._rows(), self.n_bits_)
        return np.arange(first, self.n_samples_)

    def query(self, codes: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None) -> HammingAnswers:
        """The `k` nearest codes of each query, nearest first; equal distances by the lower id, the k-th too.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_queries, n_words)
        k, allowed
            As of :meth:`ExactIndex.query`.

        Returns
        -------
        distances : int32 ndarray of shape (n_queries, min(k, n_allowed))
            Bits that differ.
        ids : int64 ndarray of the same shape

        Raises
        ------
        ValueError
            If `codes` has another type or shape than those of :meth:`fit`, `k` is below 1, or `allowed` has another
            length.
        """
        return self._answers(codes, k, allowed, self._nearest)

    def _checked_queries(self, Q: npt.ArrayLike) -> Uint64Array:
        return checked_codes(Q, "codes", self.n_bits_)

    def _nearest(self, Q: Uint64Array, shown: Uint8Array, n_shown: int, distances: Int32Array, ids: Int64Array) -> None:
        def ask(part: slice) -> None:
            limits = np.full(len(Q[part]), self.n_bits_ + 1)
            heaps, _ = self._searched(Q[part], limits, ids.shape[1], shown)
            distances[part], ids[part] = _unpacked(np.sort(-heaps, axis=1))

        ask_parts(len(Q), self.n_jobs, ask, _PART_QUERIES)

    def radius(
        self, codes: npt.ArrayLike, r: int | npt.ArrayLike, *, allowed: BoolArray | None = None
    ) -> tuple[list[Int32Array], list[Int64Array]]:
        """All codes that differ from each query in `r` bits at most, nearest first; equal distances by the lower id.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_queries, n_words)
        r : int >= 0, or int array-like of shape (n_queries,)
        allowed : bool ndarray of shape (n_samples,), optional
            Codes that may be answers; all by default.

        Returns
        -------
        distances : list of n_queries int32 ndarrays
            Views of one array, as are the ids.
        ids : list of n_queries int64 ndarrays

        Raises
        ------
        ValueError
            If `codes` has another type or shape than those of :meth:`fit`, `r` is no whole number, below 0 or of
            another length, or `allowed` has another length.
        """
        self._check_is_fitted("n_samples_")
        queries = checked_codes(codes, "codes", self.n_bits_)
        radii = np.asarray(r)
        if not np.issubdtype(radii.dtype, np.integer) or radii.shape not in {(), (len(queries),)}:
            raise ValueError(f"r={r!r} should be a whole number, or one for each of {len(queries)} queries.")
        if radii.size and radii.min() < 0:
            raise ValueError(f"r={radii.min()} should be 0 or more.")
        limits = np.broadcast_to(np.minimum(radii, self.n_bits_) + 1, len(queries)).astype(np.int64)
        shown, _ = self._visible(allowed)

        def ask(part: slice) -> tuple[int, Int64Array]:
            _, found = self._searched(queries[part], limits[part].copy(), 0, shown)
            found.sort()
            return part.stop - part.start, found

        distances: list[Int32Array] = []
        ids: list[Int64Array] = []
        for n_queries, found in ask_parts(len(queries), self.n_jobs, ask, _PART_QUERIES):
            asked = found >> kernels.ID_BITS + kernels.DISTANCE_BITS
            ends = np.searchsorted(asked, np.arange(n_queries), side="right").tolist()
            apart, numbers = _unpacked(found & (1 << kernels.ID_BITS + kernels.DISTANCE_BITS) - 1)
            for start, end in zip([0, *ends], ends, strict=False):
                distances.append(apart[start:end])
                ids.append(numbers[start:end])
        return distances, ids

    @property
    def nbytes_(self) -> int:
        """All memory."""
        return self._planes.nbytes + self._shown.nbytes + (self._tables.nbytes if self._tables else 0)

    def save(self, folder: str | Path) -> None:
        """Keep the index, codes and all, in a folder of its own, which is replaced whole.

        Parameters
        ----------
        folder : path
            Its parent has to exist.

        Raises
        ------
        FileExistsError
            If something else than an index is there.
        """
        self._check_is_fitted("n_samples_")
        meta = {
            "kind": type(self).__name__,
            "format": _FORMAT,
            "options": self.get_params(),
            "shape": [self.n_samples_, self.n_features_in_],
            "bits": self.n_bits_,
        }
        with replaced(Path(folder)) as target:
            kept = self._planes[:, : _room(self.n_samples_)]
            np.save(target / "planes.npy", kept, allow_pickle=False)
            np.save(target / "shown.npy", self._shown, allow_pickle=False)
            if self._tables is not None:
                self._tables.save(target)
            write_meta(target, meta)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Map a saved index into memory; what is added or removed stays in this process.

        Raises
        ------
        ValueError
            If it is damaged, or of another kind or version.
        FileNotFoundError
            If there is none.
        """
        source = Path(folder)
        meta = read_meta(source, _META_KEYS)
        try:
            if (meta["kind"], meta["format"]) != (cls.__name__, _FORMAT):
                raise ValueError("another kind or version")
            index = cls(**meta["options"])
            index._open(source, meta)
        except UNREADABLE as error:
            raise ValueError(DAMAGED.format(source)) from error
        return index

    def _open(self, source: Path, meta: dict[str, Any]) -> None:
        """Map the arrays that `meta` describes."""
        (self.n_samples_, self.n_features_in_), self.n_bits_ = meta["shape"], meta["bits"]
        planes = np.load(source / "planes.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
        self._shown = np.load(source / "shown.npy", allow_pickle=False)
        self._planes = planes
        self._tables = None if self.method == "scan" else Tables.load(source, self.n_bits_)
        if (planes.dtype, planes.shape) != (np.uint32, (-(-self.n_bits_ // 32), _room(self.n_samples_))):
            raise ValueError("planes of another shape")
        if self._shown.dtype != np.uint8 or self._shown.shape not in {(0,), (self.n_samples_,)}:
            raise ValueError("a mask of another shape")
        if self._tables is not None and self._tables.n_codes > self.n_samples_:
            raise ValueError("tables of more codes")

    def _put(self, rows: Uint64Array) -> None:
        """Put codes at the end of the planes, in room that at least doubles."""
        first, n = self.n_samples_, self.n_samples_ + len(rows)
        if n > _MAX_CODES:
            raise ValueError(f"{n} codes are more than an index takes, {_MAX_CODES}.")
        if n > self._planes.shape[1] or not self._planes.flags.writeable:
            grown = np.zeros((len(self._planes), _room(max(n, 2 * first))), np.uint32)
            grown[:, :first] = self._planes[:, :first]
            self._planes = grown
        self._planes[:, first:n] = self._words(rows).T
        self.n_samples_ = n

    def _rows(self) -> Uint64Array:
        """The codes by id."""
        rows = np.zeros((self.n_samples_, self.n_features_in_), np.uint64)
        rows.view("<u4")[:, : len(self._planes)] = self._planes[:, : self.n_samples_].T
        return rows

    def _words(self, rows: Uint64Array) -> Uint32Array:
        """Codes as the words of planes."""
        return read_only(np.ascontiguousarray(rows.view("<u4")[:, : len(self._planes)], dtype=np.uint32))

    def _searched(
        self, queries: Uint64Array, limits: Int64Array, k: int, shown: Uint8Array
    ) -> tuple[Int64Array, Int64Array]:
        """Answers nearer than `limits`: heaps of the k nearest, or with k = 0 all of them.

        Parameters
        ----------
        queries : uint64 ndarray of shape (n_queries, n_words)
        limits : int64 ndarray of shape (n_queries,)
            Is changed.
        shown : as in :func:`musicsim.search._hamming_kernels.scan`

        Returns
        -------
        heaps : int64 ndarray of shape (n_queries, k)
        found : int64 ndarray
        """
        words, planes, n = self._words(queries), read_only(self._planes), self.n_samples_
        shown = read_only(shown)
        heaps, sizes = np.zeros((len(queries), k), np.int64), np.zeros(len(queries), np.int64)
        tables = self._tables
        n_sorted = 0 if tables is None else tables.n_codes
        bounds = limits << kernels.ID_BITS
        found = np.empty(0, np.int64)
        if n_sorted < n:
            found = kernels.scan(planes, n_sorted, n, words, limits, heaps, sizes, shown)
        if tables is None:
            return heaps, found
        if k:
            # codes in the tables come before those that were scanned: as far as the k-th is near enough
            bounds[sizes == k] = -heaps[sizes == k, 0]
        a_scan = n_sorted * (_SCAN_CODE + _SCAN_PLANE * len(planes))
        more, given_up = tables.probe(queries, bounds, (heaps, sizes), shown, a_scan)
        parts = [found, more]
        if given_up.any():
            rest = np.flatnonzero(given_up)
            if k:
                limits = np.minimum((bounds >> kernels.ID_BITS) + 1, self.n_bits_ + 1)
            own, end = np.zeros((len(rest), k), np.int64), n if k else n_sorted
            last = kernels.scan(planes, 0, end, read_only(words[rest]), limits[rest], own, 0 * rest, shown)
            heaps[rest] = own
            asked = last >> kernels.ID_BITS + kernels.DISTANCE_BITS
            parts.append(last + (rest[asked] - asked << kernels.ID_BITS + kernels.DISTANCE_BITS))
        return heaps, np.concatenate(parts)


def checked_codes(codes: npt.ArrayLike, name: str, n_bits: int | None) -> Uint64Array:
    """Two-dimensional uint64 codes that have no bit beyond the last that counts.

    `name` is that of the argument, for the ValueError; of `n_bits` None all bits count.
    """
    array = checked_words(codes, name)
    n_words = array.shape[1]
    if n_bits is None:
        n_bits = 64 * n_words
    elif not isinstance(n_bits, Integral) or n_bits < 1:
        raise ValueError(f"n_bits={n_bits!r} should be a whole number of at least 1.")
    elif n_words != -(-n_bits // 64):
        raise ValueError(f"{name} has {n_words} words, n_bits={n_bits} needs {-(-n_bits // 64)}.")
    if n_bits > _MAX_BITS:
        raise ValueError(f"{name} has {n_bits} bits, more than {_MAX_BITS}.")
    if n_bits % 64 and (array[:, -1] >> np.uint64(n_bits % 64)).any():
        raise ValueError(f"{name} has bits beyond n_bits={n_bits}.")
    return read_only(np.ascontiguousarray(array))


def _room(n: int) -> int:
    """Places for n codes: whole tiles."""
    return -(-n // kernels.TILE) * kernels.TILE


def _unpacked(answers: Int64Array) -> HammingAnswers:
    """Distances and ids of answers that hold both."""
    return (answers >> kernels.ID_BITS).astype(np.int32), answers & ((1 << kernels.ID_BITS) - 1)
