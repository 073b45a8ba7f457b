"""Fixed splits: which songs are for training, validation and test, as a data set or a person says."""

import json
from collections.abc import Mapping

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.db.database import Tables

PARTS = ("train", "validation", "test")
_KEY = "splits"
_SPELLINGS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def part_of(text: str) -> str | None:
    """The one of :data:`PARTS` that a text names; None where it names none."""
    return _SPELLINGS.get(text.strip().lower())


class SplitStore(Tables):
    """The fixed splits of one library, by name."""

    def names(self) -> list[str]:
        """Names of the splits, sorted."""
        return sorted(self._all())

    def get(self, name: str) -> dict[int, str]:
        """The part of each song of a split by its id; songs that have gone since may be among them.

        Raises NotFoundError if there is no split of this name.
        """
        splits = self._all()
        if name not in splits:
            raise NotFoundError(f"there is no split {name!r}: `musicsim splits list` shows them.")
        return {song_id: part for part, ids in splits[name].items() for song_id in ids}

    def keep(self, name: str, parts: Mapping[int, str]) -> None:
        """Keep the part of each song by its id under a name, in place of a split of this name."""
        of_part = {part: sorted(i for i, own in parts.items() if own == part) for part in PARTS}
        self._write_all(self._all() | {name: of_part})

    def delete(self, name: str) -> None:
        """Delete a split; raises as :meth:`get`."""
        self.get(name)
        self._write_all({other: parts for other, parts in self._all().items() if other != name})

    def _all(self) -> dict[str, dict[str, list[int]]]:
        stored = self._value(sa.select(schema.meta.c.value).where(schema.meta.c.key == _KEY))
        found: dict[str, dict[str, list[int]]] = json.loads(stored or "{}")
        return found

    def _write_all(self, splits: Mapping[str, Mapping[str, list[int]]]) -> None:
        with self._write() as connection:
            row = schema.meta.insert().prefix_with("OR REPLACE").values(key=_KEY, value=json.dumps(splits))
            connection.execute(row)
