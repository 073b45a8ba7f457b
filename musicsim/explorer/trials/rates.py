"""Shares of cases with intervals."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from musicsim.wording import count

_Z = 1.959964  # for 95% intervals


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of cases, with its interval."""

    share: float | None  # None without cases
    n: int  # number of cases
    low: float  # Wilson 95% interval; 0 and 1 if there are no cases
    high: float
    chance: float | None = None  # share expected from random answers, if known

    def describe(self, case: str = "case", *, with_chance: bool = False) -> str:
        """Return a phrase such as "19 of 30 cases (63%, 95% interval 46% to 78%; guessing: 50%)"."""
        assert self.share is not None
        guessing = f"; guessing: {self.chance:.0%}" if with_chance and self.chance is not None else ""
        n_true = round(self.share * self.n)
        return f"{n_true:,} of {count(self.n, case)} ({self.share:.0%}, 95% interval {self.interval}{guessing})"

    @property
    def interval(self) -> str:
        """The ends of the 95% interval, as text."""
        return f"{self.low:.0%} to {self.high:.0%}"


def measure_rate(cases: Iterable[tuple[bool, float]]) -> Rate:
    """Return the share of (is true, probability by chance) cases that are true; `chance` is the mean probability."""
    cases = list(cases)
    n = len(cases)
    if not n:
        return estimate_rate(0.0, 0)
    return estimate_rate(sum(is_true for is_true, _ in cases) / n, n, sum(chance for _, chance in cases) / n)


def estimate_rate(share: float, n: int, chance: float | None = None) -> Rate:
    """Return a share of `n` cases, with Wilson's 95% interval."""
    if not n:
        return Rate(None, 0, 0.0, 1.0)
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Rate(share, n, max(0.0, middle - half), min(1.0, middle + half), chance)
