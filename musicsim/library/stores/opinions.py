"""What listeners say of songs, answers and models: what the tables of it share."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import sqlalchemy as sa

from musicsim.library.db.database import Tables


class OpinionStore(Tables):
    """Opinions of one kind in one library.

    An opinion is no change that pages have to be drawn again for: transactions leave the library's revision as it is.
    """

    newest: ClassVar[sa.Column[Any]]
    """What grows with every opinion: the number it has, or the time when it was said."""

    def mark(self) -> tuple[int, float]:
        """How many opinions there are, and which is the newest: others for others."""
        n, last = next(self._rows(sa.select(sa.func.count(), sa.func.max(self.newest))))
        return n, last or 0


class NumberedOpinionStore(OpinionStore):
    """Opinions that have a number each, the column `id`."""

    def forget(self, number: int) -> None:
        """Take back the opinion of a number; one that is not there is no error."""
        table = self.newest.table
        with self._write() as connection:
            connection.execute(sa.delete(table).where(table.c.id == number))


def checked_details(details: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Details as JSON will give them back. Raises ValueError if JSON cannot hold them."""
    if details is None:
        return None
    try:
        return dict(json.loads(json.dumps(dict(details), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"details must hold text, finite numbers, lists and mappings only ({error})."
        ) from error
