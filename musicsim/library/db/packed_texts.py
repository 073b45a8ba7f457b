"""Many short texts in one, and which of them hold a part: a million names, looked through in one pass."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

import numpy as np

from musicsim._arrays import Int64Array

_FEW = 10  # times the lines that are asked for
_END = b"\xff"  # no text in UTF-8 holds it
_MIN_TYPO = 5  # letters of a text that may have a typo
_ALIKE = 0.8
_LOOKED_AT = 1_000  # lines that hold half of a text


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Texts in UTF-8, one after the other: their bytes and 9 more a line."""

    text: bytes  # each line with a byte before it that no line holds, and one behind the last
    starts: Int64Array  # (n_lines + 1,): where each line begins; the last entry is where another one would

    @classmethod
    def of(cls, lines: Iterable[str]) -> Self:
        """Lines put together."""
        encoded = [line.encode("utf-8", "surrogatepass") for line in lines]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        starts = np.concatenate([[1], 1 + np.cumsum(lengths + 1)])
        return cls(_END.join([b"", *encoded, b""]) if encoded else _END, starts)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Lines of several, one after the other."""
        lengths = [np.diff(part.starts) for part in parts]
        text = b"".join([_END, *(part.text[1:] for part in parts)])
        return cls(text, np.concatenate([[1], 1 + np.cumsum(np.concatenate([np.empty(0, dtype=np.int64), *lengths]))]))

    def lines(self, rows: Iterable[int]) -> list[str]:
        """Some lines, in the order asked for."""
        chosen = np.fromiter(rows, dtype=np.int64)
        ends = self.starts[chosen + 1] - 1
        return [
            self.text[start:end].decode("utf-8", "surrogatepass")
            for start, end in zip(self.starts[chosen].tolist(), ends.tolist(), strict=True)
        ]

    def holding(self, part: str, limit: int) -> list[int]:
        """The first `limit` lines that hold a text: those that begin with it before the others."""
        wanted = part.encode("utf-8", "surrogatepass")
        # what few lines hold is found in one pass; only where there is a choice those that begin with it are sought
        found = list(islice(self._holding(wanted), _FEW * limit))
        begin = [row for row in found if self._begins(row, wanted)]
        if len(found) == _FEW * limit and len(begin) < limit:
            begin = list(islice(self._holding(_END + wanted, 1), limit))
        return (begin + [row for row in found if not self._begins(row, wanted)])[:limit]

    def nearly_holding(self, part: str, limit: int) -> list[int]:
        """The first `limit` lines that hold a text but for a typo, the most alike first.

        Lines are looked at that hold one half of the text, as a single wrong letter leaves the other half right.
        """
        if len(part) < _MIN_TYPO:
            return []
        from rapidfuzz.distance import Indel

        middle, n_words = len(part) // 2, len(part.split())
        halves = [half.encode("utf-8", "surrogatepass") for half in (part[:middle], part[middle:])]
        rows = {row: None for half in halves for row in islice(self._holding(half), _LOOKED_AT)}

        def alike(line: str) -> float:
            words = line.split()
            spans = (" ".join(words[i : i + n_words]) for i in range(max(1, len(words) - n_words + 1)))
            return max(Indel.normalized_similarity(part, span) for span in spans)

        found = [(-alike(line), row) for row, line in zip(rows, self.lines(rows), strict=True)]
        return [row for score, row in sorted(found)[:limit] if score <= -_ALIKE]

    def _begins(self, row: int, wanted: bytes) -> bool:
        return self.text.startswith(wanted, int(self.starts[row]))

    def _holding(self, wanted: bytes, n_before: int = 0) -> Iterator[int]:
        """Yield the lines that hold some bytes, of which the first `n_before` are in front of the line."""
        at, n_lines = self.text.find(wanted, 1 - n_before), len(self.starts) - 1
        while at >= 0:
            row = int(np.searchsorted(self.starts, at + n_before, side="right")) - 1
            if row == n_lines:
                return
            yield row
            at = self.text.find(wanted, int(self.starts[row + 1]) - n_before)

    def replaced(self, rows: Int64Array, new: Self, at: Int64Array) -> Self:
        """Without some lines, and with new ones before those that are at the places `at` of what is left."""
        lengths = np.diff(self.starts)
        kept = np.delete(lengths, rows)
        text = b"".join(self._pieces(rows))
        starts = np.concatenate([[1], 1 + np.cumsum(kept)])
        cuts = np.concatenate([[0], starts[at], [len(text)]]).tolist()
        added = [new.text[a:b] for a, b in zip(new.starts[:-1].tolist(), new.starts[1:].tolist(), strict=True)]
        pieces = [text[cuts[0] : cuts[1]]]
        for line, start, end in zip(added, cuts[1:-1], cuts[2:], strict=True):
            pieces += [line, text[start:end]]
        lengths = np.insert(kept, at, np.diff(new.starts))
        return type(self)(b"".join(pieces), np.concatenate([[1], 1 + np.cumsum(lengths)]))

    def _pieces(self, without: Int64Array) -> Iterator[bytes]:
        start = 0
        for row in without.tolist():
            yield self.text[start : int(self.starts[row])]
            start = int(self.starts[row + 1])
        yield self.text[start:]
