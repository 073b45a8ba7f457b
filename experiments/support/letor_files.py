"""Learning-to-rank files: SVMLight lines with a query (LETOR, MSLR, Yahoo), and LightGBM's pairs of files.

A line is ``label qid:1 3:0.5 7:1 # comment``. Features that are not listed are 0, and the rows of a query are adjacent.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, Int32Array, Int64Array

__all__ = ["RankingRows", "load_letor", "load_lightgbm"]


_MAX_COLUMNS = 1_000_000
"""Of X where nobody says how many: 4 MB a row."""
_OPENERS: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


@dataclass(frozen=True, slots=True, eq=False)
class RankingRows:
    """Rows of a file; unpacks as ``X, y, group``.

    Attributes
    ----------
    X : float32 ndarray of shape (n_rows, d)
    y : float64 ndarray of shape (n_rows,)
        Relevance; 0 is not relevant.
    group : int64 ndarray of shape (n_queries,)
        Number of rows of each query, in file order.
    qid : tuple of str, one per query
        Empty if the file has none.
    comments : tuple of str, one per row
        Text after ``#``.
    """

    X: Float32Array
    y: Float64Array
    group: Int64Array
    qid: tuple[str, ...]
    comments: tuple[str, ...]

    def __iter__(self) -> Iterator[npt.NDArray]:
        return iter((self.X, self.y, self.group))


def load_letor(path: str | Path, *, n_features: int | None = None, zero_based: bool = False) -> RankingRows:
    """Read a file with a ``qid:`` in every line, also .gz, .xz and .bz2.

    Parameters
    ----------
    path : str or Path
    n_features : int, optional
        Number of columns; by default the highest index, up to a million. For a test file, pass that of the training
        file.
    zero_based : bool
        Features count from 0 instead of 1.

    Returns
    -------
    RankingRows
        ``X, y, group = load_letor(path)``.

    Raises
    ------
    ValueError
        If `n_features` is out of range. Also, with file and line, if a line cannot be read or decompressed, has no qid,
        lists a feature twice or out of range, or repeats an earlier query.

    Notes
    -----
    Memory: 8 bytes per entry of X, plus 16 per entry of the file during reading. The 723,000 lines of MSLR-WEB10K take
    20 seconds.
    """
    path = Path(path)
    with _opened(path) as lines:
        return _rows(path, lines, n_features, 0 if zero_based else 1, True)


def load_lightgbm(
    path: str | Path, query_path: str | Path | None = None, *, n_features: int | None = None, zero_based: bool = False
) -> RankingRows:
    """Read a file of rows without qid, and the file with the sizes of its queries.

    Parameters
    ----------
    path : str or Path
        For example ``rank.train``.
    query_path : str or Path, optional
        Default: `path` without .gz, .xz or .bz2, plus ``.query``.
    n_features, zero_based
        See :func:`load_letor`.

    Raises
    ------
    ValueError
        With file and line; also if the sizes do not sum to the number of rows.
    """
    path = Path(path)
    plain = path.with_suffix("") if path.suffix in _OPENERS else path
    query_path = Path(query_path) if query_path is not None else plain.with_name(plain.name + ".query")
    sizes = []
    with _opened(query_path) as lines:
        for number, line in _numbered(query_path, lines):
            if not line.strip():
                continue
            if not line.strip().isdecimal() or int(line) < 1:
                raise ValueError(f"{query_path}, line {number}: {line.strip()!r} should be the rows of a query.")
            sizes.append(int(line))
    with _opened(path) as lines:
        rows = _rows(path, lines, n_features, 0 if zero_based else 1, False)
    if sum(sizes) != len(rows.y):
        raise ValueError(f"{query_path}: its sizes sum to {sum(sizes)}, but {path} has {len(rows.y)} rows.")
    return RankingRows(rows.X, rows.y, np.array(sizes, dtype=np.int64), (), rows.comments)


def _opened(path: Path) -> IO[str]:
    # comments may have another encoding; bytes that are not UTF-8 become distinct \x.. escapes, in a qid too
    how = {"encoding": "utf-8-sig", "errors": "backslashreplace"}
    return _OPENERS.get(path.suffix, open)(path, "rt", **how)


def _numbered(path: Path, lines: IO[str]) -> Iterator[tuple[int, str]]:
    """Yield lines, numbered from 1; a broken or truncated compressed file raises ValueError."""
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            yield number, line
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # a disk error
            raise
        raise ValueError(
            f"{path}, after line {number}: the file is damaged, or no {path.suffix} file ({error})."
        ) from error


def _rows(path: Path, lines: IO[str], n_features: int | None, base: int, with_query: bool) -> RankingRows:
    if n_features is not None and not (isinstance(n_features, Integral) and 1 <= n_features < 2**31):
        raise ValueError(f"n_features={n_features!r} should be None, or a whole number of at least 1.")
    labels: list[float] = []
    group: list[int] = []
    queries: dict[str, None] = {}
    comments, columns, values = [], [], []
    last = None
    for number, line in _numbered(path, lines):
        body, _, comment = line.partition("#")
        tokens = body.split()
        if not tokens:
            continue
        where = f"{path}, line {number}"
        labels.append(_label(tokens[0], where))
        if with_query:
            if len(tokens) < 2 or not tokens[1].startswith("qid:") or len(tokens[1]) == 4:
                raise ValueError(f"{where}: the second word should be qid:NUMBER, the query.")
            query = tokens[1][4:]
            if query != last:
                if query in queries:
                    raise ValueError(f"{where}: query {query} comes back; the rows of a query should stand together.")
                queries[query], last = None, query
                group.append(0)
            group[-1] += 1
        column, value = _features(tokens[1 + with_query :], base, n_features, where)
        columns.append(column)
        values.append(value)
        comments.append(comment.strip())
    if not labels:
        raise ValueError(f"{path} has no rows.")
    highest = max(int(column.max(initial=-1)) for column in columns) + 1
    X = np.zeros((len(labels), highest if n_features is None else n_features), dtype=np.float32)
    for x, column, value in zip(X, columns, values, strict=True):
        x[column] = value
    return RankingRows(X, np.array(labels), np.array(group, dtype=np.int64), tuple(queries), tuple(comments))


def _label(token: str, where: str) -> float:
    try:
        label = float(token)
    except ValueError:
        label = -1.0
    if not 0 <= label < np.inf:
        raise ValueError(f"{where}: {token!r} should be the label, a number of at least 0.")
    return label


def _features(tokens: list[str], base: int, n_features: int | None, where: str) -> tuple[Int32Array, Float32Array]:
    """Return columns, counted from 0, and values of ``index:value`` words."""
    try:
        pairs = [token.split(":") for token in tokens]
        indices = [int(index) for index, _ in pairs]
        with np.errstate(over="ignore"):
            values = np.array([float(value) for _, value in pairs], dtype=np.float32)
    except ValueError:
        wrong = next(token for token in tokens if not _is_feature(token))
        raise ValueError(f"{where}: {wrong!r} should be index:value, a feature.") from None
    if not np.isfinite(values).all():
        wrong_place = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"{where}: feature {indices[wrong_place]} is not finite in single precision.")
    last = (_MAX_COLUMNS if n_features is None else n_features) - 1 + base
    for index in (min(indices, default=base), max(indices, default=base)):
        if not base <= index <= last:
            more = "; give n_features for more" if n_features is None and index > last else ""
            raise ValueError(f"{where}: feature {index} is out of range; they count from {base} to {last}{more}.")
    if len(set(indices)) < len(indices):
        raise ValueError(f"{where}: a feature is named twice.")
    return np.array(indices, dtype=np.int32) - base, values


def _is_feature(token: str) -> bool:
    index, separator, value = token.partition(":")
    try:
        int(index), float(value)
    except ValueError:
        return False
    return bool(separator)
