"""Conditions on songs, the parts of a filter. Their method ``rows`` returns a mask of matching songs, (n_songs,)."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import BoolArray
from musicsim.library import SongColumns


@dataclass(frozen=True, slots=True)
class Among:
    """The value of a column is one of `names`; a song without a value does not match."""

    column: str
    names: frozenset[str]

    def rows(self, columns: SongColumns) -> BoolArray:
        passing: BoolArray = getattr(columns, self.column).is_in(self.names)
        return passing


@dataclass(frozen=True, slots=True)
class Within:
    """The number in a column is in a range that includes its ends; unknown numbers (nan) do not match."""

    column: str
    first: float
    last: float

    def rows(self, columns: SongColumns) -> BoolArray:
        values = getattr(columns, self.column)
        return (self.first <= values) & (values <= self.last)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The row is in a mask that was computed elsewhere, for example from tags or lyrics."""

    passing: BoolArray  # (n_songs,)

    def rows(self, columns: SongColumns) -> BoolArray:
        return self.passing


@dataclass(frozen=True, slots=True)
class Not:
    """The given condition does not hold."""

    condition: "Condition"

    def rows(self, columns: SongColumns) -> BoolArray:
        return ~self.condition.rows(columns)


@dataclass(frozen=True, slots=True)
class All:
    """All given conditions hold; there is at least one."""

    conditions: "tuple[Condition, ...]"

    def rows(self, columns: SongColumns) -> BoolArray:
        """Return a new array, which the caller may change."""
        passing: BoolArray = np.logical_and.reduce([part.rows(columns) for part in self.conditions])
        return passing


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the given conditions holds; there is at least one."""

    conditions: "tuple[Condition, ...]"

    def rows(self, columns: SongColumns) -> BoolArray:
        passing: BoolArray = np.logical_or.reduce([part.rows(columns) for part in self.conditions])
        return passing


Condition = Among | Within | Listed | Not | All | AnyOf
