"""Differences between two versions of a file, small enough to store: the bytes that restore the old version.

Tags are at the start or the end of a file, so the sound is at the same distance from the start or from the end in both
versions. Only a few header fields within it may differ. If the versions share nothing, a patch is the whole old file.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Int64Array

_BLOCK = 1 << 20  # bytes that are compared at once
_MAX_GAP = 16  # equal bytes between two different ones that are stored, because a run has a header of 16 bytes

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The bytes that restore an old version. Except in `runs`, each of its bytes is in the new version."""

    size: int  # bytes of the old version
    prefix: int  # the first bytes are at the same place in both versions
    shift: int  # later bytes are this many bytes further on in the new version
    runs: bytes  # different bytes, compressed: number of runs, their starts and lengths, then their bytes

    def restore(self, new: Path, target: Path) -> None:
        """Write the old version to `target`, given the new version."""
        data = _map(new)
        first = max(self.prefix, -self.shift)
        last = min(self.size, len(data) - self.shift)
        plain = memoryview(zlib.decompress(self.runs))
        n_runs = int(np.frombuffer(plain[:8], np.int64)[0])
        bounds = np.frombuffer(plain[8 : 8 + 16 * n_runs], np.int64).reshape(2, n_runs)
        at = 8 + 16 * n_runs
        with target.open("wb") as stream:
            stream.truncate(self.size)
            for begin, end, shift in ((0, self.prefix, 0), (first, last, self.shift)):
                stream.seek(begin)
                for start in range(begin, end, _BLOCK):
                    stream.write(data[start + shift : min(start + _BLOCK, end) + shift].tobytes())
            for start, length in bounds.T.tolist():
                stream.seek(start)
                stream.write(plain[at : at + length])
                at += length


def make_patch(old: Path, new: Path) -> FilePatch:
    """Compare two files block by block; memory is a few times the number of different bytes."""
    a, b = _map(old), _map(new)
    prefix = _common_prefix(a, b)
    candidates = [(shift, _find_runs(a, b, prefix, shift)) for shift in dict.fromkeys((len(b) - len(a), 0))]
    shift, (starts, lengths) = min(candidates, key=lambda item: int(item[1][1].sum()))
    parts = [np.array([len(starts)], np.int64).tobytes(), starts.tobytes(), lengths.tobytes()]
    parts += [
        a[start : start + length].tobytes() for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    return FilePatch(len(a), prefix, shift, zlib.compress(b"".join(parts)))


def _map(path: Path) -> _Bytes:
    if path.stat().st_size == 0:
        return np.empty(0, np.uint8)
    return np.memmap(path, np.uint8, "r")


def _common_prefix(a: _Bytes, b: _Bytes) -> int:
    n = min(len(a), len(b))
    for start in range(0, n, _BLOCK):
        differs = a[start : min(start + _BLOCK, n)] != b[start : min(start + _BLOCK, n)]
        if differs.any():
            return start + int(differs.argmax())
    return n


def _find_runs(a: _Bytes, b: _Bytes, prefix: int, shift: int) -> tuple[Int64Array, Int64Array]:
    """Return the starts and lengths of the runs of `a` that differ from the shifted `b`."""
    first = min(max(prefix, -shift), len(a))
    last = max(min(len(a), len(b) - shift), first)
    runs = [(prefix, first)] if prefix < first else []
    for start in range(first, last, _BLOCK):
        end = min(start + _BLOCK, last)
        places = np.flatnonzero(a[start:end] != b[start + shift : end + shift]) + start
        if len(places):
            breaks = np.flatnonzero(np.diff(places) > _MAX_GAP)
            starts, ends = places[np.r_[0, breaks + 1]], places[np.r_[breaks, len(places) - 1]] + 1
            runs += zip(starts.tolist(), ends.tolist(), strict=True)
    runs += [(last, len(a))] if last < len(a) else []
    bounds = np.array(runs, dtype=np.int64).reshape(-1, 2)
    return bounds[:, 0].copy(), bounds[:, 1] - bounds[:, 0]
