"""Fixed splits into songs for training, validation and test, from a data set or a person."""

import json
from collections.abc import Mapping

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import Tables, schema

PARTS = ("train", "validation", "test")
_KEY = "splits"
_SPELLINGS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("valid", "validation", "val", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def part_of(text: str) -> str | None:
    """Return the part in :data:`PARTS` that `text` names, or None."""
    return _SPELLINGS.get(text.strip().lower())


class SplitStore(Tables):
    def names(self) -> list[str]:
        return sorted(self._all())

    def get(self, name: str) -> dict[int, str]:
        """Return each song's part, keyed by id, including deleted songs. Raises NotFoundError for an unknown split."""
        splits = self._all()
        if name not in splits:
            raise NotFoundError(f"split {name!r} does not exist: `musicsim splits list` lists all splits.")
        return {song_id: part for part, ids in splits[name].items() for song_id in ids}

    def keep(self, name: str, parts: Mapping[int, str]) -> None:
        """Store a split, a dict from song id to part; it replaces a split with the same name."""
        split = {part: sorted(i for i, song_part in parts.items() if song_part == part) for part in PARTS}
        self._update_text(_KEY, lambda text: json.dumps(_read(text) | {name: split}))

    def delete(self, name: str) -> None:
        """Delete a split. Raises NotFoundError for an unknown split."""
        self.get(name)
        self._update_text(_KEY, lambda text: json.dumps({k: parts for k, parts in _read(text).items() if k != name}))

    def _all(self) -> dict[str, dict[str, list[int]]]:
        return _read(self._value(sa.select(schema.meta.c.value).where(schema.meta.c.key == _KEY)))


def _read(text: str | None) -> dict[str, dict[str, list[int]]]:
    splits: dict[str, dict[str, list[int]]] = json.loads(text or "{}")
    return splits
