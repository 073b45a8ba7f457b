"""Tallies of choices between two options, with the sign test."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from musicsim.library import Judgment


@dataclass(frozen=True, slots=True)
class Tally:
    """Number of times that each of two options was chosen; `first` is the first one in alphabetical order."""

    first: str
    second: str
    wins_first: int
    wins_second: int
    ties: int

    @property
    def n_answers(self) -> int:
        return self.n_decided + self.ties

    @property
    def n_decided(self) -> int:
        return self.wins_first + self.wins_second

    @property
    def share(self) -> float | None:
        """Share of the first option among the decided answers; None if there are none."""
        return self.wins_first / self.n_decided if self.n_decided else None

    @property
    def p_value(self) -> float:
        """P-value of the two-sided sign test on the decided answers; 1 if there are none."""
        n = self.n_decided
        tail = sum(math.comb(n, k) for k in range(min(self.wins_first, self.wins_second) + 1))
        return min(1.0, 2 * tail / 2**n)

    def describe(self) -> str:
        """Return a phrase such as "7 of 9 answers for “A”; by chance alone, this happens in 18% of cases"."""
        if not self.n_decided:
            return "no difference so far"
        if self.wins_first == self.wins_second:
            return f"{self.wins_first} of {self.n_decided} answers for each: a tie"
        wins, leader = max((self.wins_first, self.first), (self.wins_second, self.second))
        share = "less than 1%" if self.p_value < 0.005 else f"{100 * self.p_value:.0f}%"
        return f"{wins} of {self.n_decided} answers for “{leader}”; by chance alone, this happens in {share} of cases"


def tally_choices(
    answers: Iterable[Judgment], options_of: Callable[[Judgment], tuple[str, str]] = lambda answer: answer.options
) -> list[Tally]:
    """Count the choices for each pair of options; pairs with the most answers come first."""
    counts: dict[tuple[str, str], list[int]] = {}
    for answer in answers:
        options = options_of(answer)
        pair = (min(options), max(options))
        winner = pair.index(options[answer.chosen]) if answer.chosen in (0, 1) else 2
        counts.setdefault(pair, [0, 0, 0])[winner] += 1
    tallies = [Tally(*pair, *count) for pair, count in counts.items()]
    return sorted(tallies, key=lambda tally: (-tally.n_answers, tally.first, tally.second))
