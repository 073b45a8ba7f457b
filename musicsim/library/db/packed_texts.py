"""Many short strings joined into one, so that a search through a million names takes one pass."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

import numpy as np

from musicsim._arrays import Int64Array

_OVERSAMPLING = 10  # number of lines to find, as a multiple of the requested number
_END = b"\xff"  # separator of lines, which does not occur in UTF-8
_MIN_TYPO = 5  # minimum length of a string that may contain a typo
_MIN_SIMILARITY = 0.8
_MAX_CANDIDATES = 1_000  # maximum number of candidate lines per half of a string


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Lines joined as UTF-8; each takes 9 bytes in addition to its text."""

    text: bytes  # the lines, with one separator byte before each and after the last
    starts: Int64Array  # (n_lines + 1,): start of each line, then the start of the next line that is appended

    @classmethod
    def pack(cls, lines: Iterable[str]) -> Self:
        encoded = [_encode(line) for line in lines]
        return cls(_END.join([b"", *encoded, b""]) if encoded else _END, _starts([len(line) + 1 for line in encoded]))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        lengths = [np.empty(0, dtype=np.int64), *(np.diff(part.starts) for part in parts)]
        return cls(b"".join([_END, *(part.text[1:] for part in parts)]), _starts(np.concatenate(lengths)))

    def lines(self, rows: Iterable[int]) -> list[str]:
        indices = np.fromiter(rows, dtype=np.int64)
        ends = self.starts[indices + 1] - 1
        return [
            self.text[start:end].decode("utf-8", "surrogatepass")
            for start, end in zip(self.starts[indices].tolist(), ends.tolist(), strict=True)
        ]

    def holding(self, part: str, limit: int) -> list[int]:
        """Return the first `limit` rows whose lines contain `part`; lines that begin with it come first."""
        wanted = _encode(part)
        # one pass finds a rare string; a frequent one needs a second pass for the lines that begin with it
        rows = list(islice(self._find(wanted), _OVERSAMPLING * limit))
        begin = [row for row in rows if self._begins(row, wanted)]
        if len(rows) == _OVERSAMPLING * limit and len(begin) < limit:
            begin = list(islice(self._find(_END + wanted, 1), limit))
        return (begin + [row for row in rows if not self._begins(row, wanted)])[:limit]

    def nearly_holding(self, part: str, limit: int) -> list[int]:
        """Return the first `limit` rows whose lines contain `part` with a typo, the most similar first."""
        if len(part) < _MIN_TYPO:
            return []
        from rapidfuzz.distance import Indel

        middle, n_words = len(part) // 2, len(part.split())
        halves = (part[:middle], part[middle:])  # one wrong letter leaves the other half correct
        rows = {row: None for half in halves for row in islice(self._find(_encode(half)), _MAX_CANDIDATES)}

        def similarity(line: str) -> float:
            words = line.split()
            spans = (" ".join(words[i : i + n_words]) for i in range(max(1, len(words) - n_words + 1)))
            return max(Indel.normalized_similarity(part, span) for span in spans)

        scores = [(-similarity(line), row) for row, line in zip(rows, self.lines(rows), strict=True)]
        return [row for score, row in sorted(scores)[:limit] if score <= -_MIN_SIMILARITY]

    def _begins(self, row: int, wanted: bytes) -> bool:
        return self.text.startswith(wanted, int(self.starts[row]))

    def _find(self, wanted: bytes, n_before: int = 0) -> Iterator[int]:
        """Yield the row of each line that contains `wanted[n_before:]` directly after the bytes `wanted[:n_before]`."""
        at, n_lines = self.text.find(wanted, 1 - n_before), len(self.starts) - 1
        while at >= 0:
            row = int(np.searchsorted(self.starts, at + n_before, side="right")) - 1
            if row == n_lines:
                return
            yield row
            at = self.text.find(wanted, int(self.starts[row + 1]) - n_before)

    def replace_lines(self, rows: Int64Array, new: Self, at: Int64Array) -> Self:
        """Return the lines with `rows` deleted, and then with the lines of `new` inserted at the indices `at`."""
        rest = np.delete(np.diff(self.starts), rows)
        begins, ends = [0, *self.starts[rows + 1].tolist()], [*self.starts[rows].tolist(), len(self.text)]
        text = b"".join(self.text[begin:end] for begin, end in zip(begins, ends, strict=True))
        cuts = np.concatenate([[0], _starts(rest)[at], [len(text)]]).tolist()
        pieces = [text[cuts[0] : cuts[1]]]
        inserted = zip(new.starts[:-1].tolist(), new.starts[1:].tolist(), strict=True)
        for (first, last), start, end in zip(inserted, cuts[1:-1], cuts[2:], strict=True):
            pieces += [new.text[first:last], text[start:end]]
        return type(self)(b"".join(pieces), _starts(np.insert(rest, at, np.diff(new.starts))))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _starts(lengths: Int64Array | list[int]) -> Int64Array:
    return np.concatenate([[1], 1 + np.cumsum(lengths, dtype=np.int64)])
