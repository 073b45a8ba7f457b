"""Exact nearest neighbors of bit codes by Hamming distance: a scan of all codes, or tables of buckets."""

from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Int32Array, Int64Array, Uint8Array, Uint32Array, Uint64Array
from musicsim._checks import check_choice
from musicsim._npy import save_array
from musicsim.hashing.packing import check_words
from musicsim.search import _hamming_kernels as kernels
from musicsim.search._folders import read_meta, report_damage
from musicsim.search._hamming_tables import BucketTables
from musicsim.search._rows import Index, check_n_jobs, map_parts, read_only

METHODS = ("scan", "balls")

_FORMAT = 1
_META_KEYS = ("kind", "format", "options", "shape", "bits")
_MAX_BITS = (1 << kernels.DISTANCE_BITS) - 1
_MAX_CODES = (1 << kernels.ID_BITS) - 2
_QUERY_SHIFT = kernels.ID_BITS + kernels.DISTANCE_BITS
PART_QUERIES = 1024  # Number of queries whose heaps are in memory at a time
# Nanoseconds that a scan takes per code, and per 32 bits of a code (measured on AMD EPYC).
SCAN_CODE, _SCAN_PLANE = 0.04, 0.035
# Codes added after the tables were built are scanned. If their share exceeds this, the tables are rebuilt.
_MAX_ADDED_SHARE = 1 / 16
ALWAYS_ALLOWED_ADDED = 4096

HammingNeighbors = tuple[Int32Array, Int64Array]


class HammingIndex(Index):
    """Find the nearest bit codes, exactly, without comparing all of them.

    Exact nearest neighbors of bit codes; ties are ordered by id.

    Parameters
    ----------
    method : "scan" or "balls"
        "scan" compares the query with every code. "balls" only opens buckets of codes that differ from the query in at
        most a few of the bucket's bits, and scans if too many buckets might hold results. The results are the same.
    n_bits : int, optional
        Number of bits that are compared, starting with the lowest bit of the first word; by default 64 per word.
    n_jobs : as in :class:`SpillTree`

    Attributes
    ----------
    n_samples_, n_features_in_, n_bits_ : int
        Number of codes ever added (ids are below it), of words per code, and of bits per code.
    nbytes_ : int
        Total memory; codes are copied. "scan" takes 4 bytes per 32 bits of a code. "balls" takes, in addition, 12 bytes
        per code and table if a code has at most 64 bits. For longer codes it takes 8 bytes per word and 4 per table.
        Each bucket takes 4 bytes. The total for ten million codes is 280 MB with 32 bits, 560 MB with 64 bits, and
        1.3 GB with 256 bits. Building the tables needs another copy of the codes.

    See Also
    --------
    musicsim.hashing.RankHash : Learns codes.
    CompactIndex : Ranks candidates by their vectors.

    Notes
    -----
    Nair, Mahajan, Sundararajan (WWW 2012), 2.1. The scan sums the differing bits of 64 codes together. It examines
    single codes only if the smallest sum is below the k-th nearest distance so far. Long codes are first compared by
    their first 64 bits, as long as this excludes most codes. Several queries share one pass. "balls" is multi-index
    hashing (Norouzi, Punjani, Fleet, CVPR 2012): each table uses some bits of the code as its bucket number.

    References
    ----------
    - M. Norouzi, A. Punjani and D. Fleet, Fast exact search in Hamming space with multi-index hashing, IEEE TPAMI 36,
      2014.

    Examples
    --------
    >>> from musicsim.hashing import pack_bits
    >>> from musicsim.search import HammingIndex
    >>> codes = pack_bits([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]])
    >>> index = HammingIndex(n_bits=4).fit(codes)
    >>> index.query(codes[:1], k=2)
    (array([[0, 1]], dtype=int32), array([[0, 1]]))
    >>> index.radius(codes[:1], 1)
    ([array([0, 1], dtype=int32)], [array([0, 1])])
    """

    _DISTANCE = np.int32
    _planes: Uint32Array
    _tables: BucketTables | None

    def __init__(self, method: str = "scan", *, n_bits: int | None = None, n_jobs: int | None = -1) -> None:
        self.method, self.n_bits, self.n_jobs = method, n_bits, n_jobs

    def fit(self, codes: npt.ArrayLike, y: None = None) -> Self:
        """Store the codes.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_samples, n_words); bits from `n_bits` upward are 0
        """
        check_choice("method", self.method, METHODS)
        check_n_jobs(self.n_jobs)
        rows = check_codes(codes, "codes", self.n_bits)
        self.n_features_in_ = rows.shape[1]
        self.n_bits_ = 64 * rows.shape[1] if self.n_bits is None else int(self.n_bits)
        self.n_samples_ = 0
        self._planes = np.zeros((-(-self.n_bits_ // 32), 0), np.uint32)
        self._shown = np.empty(0, np.uint8)
        self._append(rows)
        self._tables = None if self.method == "scan" else self._build_tables()
        return self

    def add(self, codes: npt.ArrayLike) -> Int64Array:
        """Add codes to a fitted index; return their int64 ids.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_new, n_words)
        """
        self._check_is_fitted("n_samples_")
        rows = self._check_width(codes)
        first = self.n_samples_
        self._append(rows)
        self._extend_shown(len(rows))
        if self._tables is not None:
            n_added = self.n_samples_ - self._tables.n_codes
            if n_added > max(ALWAYS_ALLOWED_ADDED, _MAX_ADDED_SHARE * self.n_samples_):
                self._tables = self._build_tables()
        return np.arange(first, self.n_samples_)

    def query(self, codes: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None) -> HammingNeighbors:
        """Return the `k` codes nearest to each query; ties are ordered by id.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_queries, n_words)
        k, allowed : as in :meth:`ExactIndex.query`

        Returns
        -------
        distances : int32 ndarray of shape (n_queries, min(k, n_allowed))
            Number of bits that differ, ascending.
        ids : int64 ndarray of the same shape
        """
        return self._search(codes, k, allowed, self._fill_nearest)

    def _check_width(self, Q: npt.ArrayLike) -> Uint64Array:
        return check_codes(Q, "codes", self.n_bits_)

    def _fill_nearest(
        self, Q: Uint64Array, shown: Uint8Array, n_shown: int, distances: Int32Array, ids: Int64Array
    ) -> None:
        def search(part: slice) -> None:
            limits = np.full(len(Q[part]), self.n_bits_ + 1)
            heaps, _ = self._find_below(Q[part], limits, ids.shape[1], shown)
            distances[part], ids[part] = _unpack(np.sort(-heaps, axis=1))

        map_parts(len(Q), self.n_jobs, search, PART_QUERIES)

    def radius(
        self, codes: npt.ArrayLike, r: int | npt.ArrayLike, *, allowed: BoolArray | None = None
    ) -> tuple[list[Int32Array], list[Int64Array]]:
        """Return all codes that differ from each query in at most `r` bits, sorted by distance, then by id.

        Parameters
        ----------
        codes : uint64 array-like of shape (n_queries, n_words)
        r : int >= 0, or int array-like of shape (n_queries,)
        allowed : as in :meth:`query`

        Returns
        -------
        distances, ids : lists of n_queries int32 and int64 ndarrays
            Distances are ascending. The arrays of a list are views of one array.
        """
        self._check_is_fitted("n_samples_")
        queries = self._check_width(codes)
        radii = np.asarray(r)
        if not np.issubdtype(radii.dtype, np.integer) or radii.shape not in {(), (len(queries),)}:
            raise ValueError(f"r={r!r} must be an integer, or one integer for each of {len(queries)} queries.")
        if radii.size and radii.min() < 0:
            raise ValueError(f"r={radii.min()} must be at least 0.")
        limits = np.broadcast_to(np.minimum(radii, self.n_bits_) + 1, len(queries)).astype(np.int64)
        shown, _ = self._combine_masks(allowed)

        def search(part: slice) -> tuple[int, Int64Array]:
            _, results = self._find_below(queries[part], limits[part].copy(), 0, shown)
            results.sort()
            return part.stop - part.start, results

        distances: list[Int32Array] = []
        ids: list[Int64Array] = []
        for n_queries, results in map_parts(len(queries), self.n_jobs, search, PART_QUERIES):
            ends = np.searchsorted(results >> _QUERY_SHIFT, np.arange(n_queries), side="right").tolist()
            part_distances, part_ids = _unpack(results & (1 << _QUERY_SHIFT) - 1)
            for start, end in zip([0, *ends], ends, strict=False):
                distances.append(part_distances[start:end])
                ids.append(part_ids[start:end])
        return distances, ids

    @property
    def nbytes_(self) -> int:
        """Total memory in bytes."""
        return self._planes.nbytes + self._shown.nbytes + (self._tables.nbytes if self._tables else 0)

    def _meta(self) -> dict[str, Any]:
        return {"format": _FORMAT, "bits": self.n_bits_}

    def _write(self, folder: Path) -> None:
        save_array(folder / "planes.npy", self._planes[:, : _round_up(self.n_samples_)])
        if self._tables is not None:
            self._tables.save(folder)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Map a saved index into memory; later additions and removals stay in this process.

        Parameters
        ----------
        folder : str or Path

        Raises
        ------
        ValueError
            If the index is damaged, or has a different class or version.
        FileNotFoundError
            If the folder holds no index.
        """
        source = Path(folder)
        meta = read_meta(source, _META_KEYS)
        with report_damage(source):
            if (meta["kind"], meta["format"]) != (cls.__name__, _FORMAT):
                raise ValueError("The index has a different class or version.")
            index = cls(**meta["options"])
            (index.n_samples_, index.n_features_in_), index.n_bits_ = meta["shape"], meta["bits"]
            index._read_shown(source)
            planes = np.load(source / "planes.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
            index._planes = planes
            index._tables = None if index.method == "scan" else BucketTables.load(source, index.n_bits_)
            if (planes.dtype, planes.shape) != (np.uint32, (-(-index.n_bits_ // 32), _round_up(index.n_samples_))):
                raise ValueError("planes.npy does not match the codes.")
            if index._tables is not None and index._tables.n_codes > index.n_samples_:
                raise ValueError("The tables contain too many codes.")
        return index

    def _append(self, rows: Uint64Array) -> None:
        """Append codes to the planes, whose capacity at least doubles when they are full."""
        first, n = self.n_samples_, self.n_samples_ + len(rows)
        if n > _MAX_CODES:
            raise ValueError(f"{n} is too many codes; an index can hold at most {_MAX_CODES}.")
        if n > self._planes.shape[1] or not self._planes.flags.writeable:
            planes = np.zeros((len(self._planes), _round_up(max(n, 2 * first))), np.uint32)
            planes[:, :first] = self._planes[:, :first]
            self._planes = planes
        self._planes[:, first:n] = self._to_planes(rows).T
        self.n_samples_ = n

    def _build_tables(self) -> BucketTables:
        rows = np.zeros((self.n_samples_, self.n_features_in_), np.uint64)
        rows.view("<u4")[:, : len(self._planes)] = self._planes[:, : self.n_samples_].T
        return BucketTables.build(rows, self.n_bits_)

    def _to_planes(self, rows: Uint64Array) -> Uint32Array:
        return read_only(np.ascontiguousarray(rows.view("<u4")[:, : len(self._planes)], dtype=np.uint32))

    def _find_below(
        self, queries: Uint64Array, limits: Int64Array, k: int, shown: Uint8Array
    ) -> tuple[Int64Array, Int64Array]:
        """Find results nearer than `limits`; return heaps (n_queries, k), and all results if k = 0. Lowers `limits`."""
        words, planes, n = self._to_planes(queries), read_only(self._planes), self.n_samples_
        shown = read_only(shown)
        heaps, sizes = np.zeros((len(queries), k), np.int64), np.zeros(len(queries), np.int64)
        tables = self._tables
        n_sorted = 0 if tables is None else tables.n_codes
        bounds = limits << kernels.ID_BITS
        results = np.empty(0, np.int64)
        if n_sorted < n:
            results = kernels.scan(planes, n_sorted, n, words, limits, heaps, sizes, shown)
        if tables is None:
            return heaps, results
        if k:
            # a code in the tables has a lower id than a scanned one, so it wins a tie with the k-th nearest
            bounds[sizes == k] = -heaps[sizes == k, 0]
        scan_cost = n_sorted * (SCAN_CODE + _SCAN_PLANE * len(planes))
        more, given_up = tables.probe(queries, bounds, (heaps, sizes), shown, scan_cost)
        parts = [results, more]
        if given_up.any():
            rest = np.flatnonzero(given_up)
            if k:
                limits = np.minimum((bounds >> kernels.ID_BITS) + 1, self.n_bits_ + 1)
            rest_heaps, end = np.zeros((len(rest), k), np.int64), n if k else n_sorted
            more = kernels.scan(planes, 0, end, read_only(words[rest]), limits[rest], rest_heaps, 0 * rest, shown)
            heaps[rest] = rest_heaps
            queries_of = more >> _QUERY_SHIFT
            parts.append(more + (rest[queries_of] - queries_of << _QUERY_SHIFT))
        return heaps, np.concatenate(parts)


def check_codes(codes: npt.ArrayLike, name: str, n_bits: int | None) -> Uint64Array:
    """Check that codes are two-dimensional and use only the first `n_bits` bits (if given); return them as uint64.

    `name` is the name of the argument in error messages.
    """
    array = check_words(codes, name)
    n_words = array.shape[1]
    if n_bits is None:
        n_bits = 64 * n_words
    elif not isinstance(n_bits, Integral) or n_bits < 1:
        raise ValueError(f"n_bits={n_bits!r} must be an integer of at least 1.")
    elif n_words != -(-n_bits // 64):
        raise ValueError(f"{name} has shape {array.shape}; with n_bits={n_bits}, its width must be {-(-n_bits // 64)}.")
    if n_bits > _MAX_BITS:
        raise ValueError(f"{name} has {n_bits} bits; at most {_MAX_BITS} are allowed.")
    if n_bits % 64 and (array[:, -1] >> np.uint64(n_bits % 64)).any():
        raise ValueError(f"{name} has bits beyond n_bits={n_bits}; set n_bits higher or clear these bits.")
    return read_only(np.ascontiguousarray(array))


def _round_up(n: int) -> int:
    return -(-n // kernels.TILE) * kernels.TILE


def _unpack(results: Int64Array) -> HammingNeighbors:
    return (results >> kernels.ID_BITS).astype(np.int32), results & ((1 << kernels.ID_BITS) - 1)
