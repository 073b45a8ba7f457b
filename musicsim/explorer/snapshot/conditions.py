"""Conditions on songs, each of columns or of rows: what filters mean, for whoever has to tell which songs pass."""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import BoolArray
from musicsim.library.db.columns import SongColumns


@dataclass(frozen=True, slots=True)
class Among:
    """The text of a column is one of some; a song without a text has none of them."""

    column: str
    names: frozenset[str]

    def rows(self, columns: SongColumns) -> BoolArray:
        """Which songs pass, bool (n_songs,)."""
        passing: BoolArray = getattr(columns, self.column).among(self.names)
        return passing


@dataclass(frozen=True, slots=True)
class Within:
    """The number of a column lies in a range, its ends included; one that is not known lies in none."""

    column: str
    first: float
    last: float

    def rows(self, columns: SongColumns) -> BoolArray:
        """Which songs pass, bool (n_songs,)."""
        values = getattr(columns, self.column)
        return (self.first <= values) & (values <= self.last)  # nan, unknown, is in no range


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """A song is among rows that were looked up elsewhere: by its tags, or by what is sung."""

    passing: BoolArray  # (n_songs,)

    def rows(self, columns: SongColumns) -> BoolArray:
        """Which songs pass, bool (n_songs,)."""
        return self.passing


@dataclass(frozen=True, slots=True)
class Not:
    """A condition does not hold."""

    condition: "Condition"

    def rows(self, columns: SongColumns) -> BoolArray:
        """Which songs pass, bool (n_songs,)."""
        return ~self.condition.rows(columns)


@dataclass(frozen=True, slots=True)
class All:
    """All of some conditions hold; at least one is given."""

    conditions: "tuple[Condition, ...]"

    def rows(self, columns: SongColumns) -> BoolArray:
        """Which songs pass, bool (n_songs,); an array of its own."""
        passing: BoolArray = np.logical_and.reduce([part.rows(columns) for part in self.conditions])
        return passing


Condition = Among | Within | Listed | Not | All
