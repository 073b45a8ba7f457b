"""A library's saved rules."""

import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from musicsim.errors import LibraryError, NotFoundError
from musicsim.explorer import find_titled, snapshot_under
from musicsim.extensions.rules.rule import MAX_NAME, Rule, make_rule
from musicsim.extensions.rules.tables import rules
from musicsim.library import Library, Tables


@dataclass(frozen=True, slots=True)
class SavedRule:
    name: str
    document: dict[str, Any]
    saved_at: float  # seconds since 1970

    @property
    def rule(self) -> Rule:
        """The rule; raises LibraryError if this version of musicsim cannot read it."""
        try:
            return make_rule(**self.document)
        except (TypeError, ValueError) as error:
            raise LibraryError(f"the rule “{self.name}” cannot be read ({error}) Save it again.") from error

    def as_json(self) -> dict[str, Any]:
        """Return the rule for the command line and the HTTP interface."""
        return {"name": self.name, "conditions": str(self.rule), "rule": self.document}


class RuleStore(Tables):
    """Changes do not increase the library's revision, because no other page shows rules."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write_unseen)
        self._library = library

    def all(self) -> list[SavedRule]:
        """Return all rules, sorted by name."""
        found = [SavedRule(*row) for row in self._rows(sa.select(rules))]
        return sorted(found, key=lambda rule: rule.name.casefold())

    def find(self, name: str) -> SavedRule | None:
        row = self._row(sa.select(rules).where(rules.c.name == name))
        return None if row is None else SavedRule(*row)

    def get(self, name: str) -> SavedRule:
        """Return a rule; raises NotFoundError if there is no rule with this name."""
        found = self.find(name)
        if found is None:
            known = ", ".join(f"“{rule.name}”" for rule in self.all()) or "none"
            raise NotFoundError(f"this library has no rule “{name}”. Choose from: {known}.")
        return found

    def save(self, name: str, rule: Rule) -> SavedRule:
        """Save a rule, replacing one with the same name; titles of songs become their ids, because titles change.

        Raises ValueError if the name is empty or too long, and NotFoundError if a title is unknown.
        """
        name = name.strip()
        if not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise ValueError(f"the name {name!r} must have 1 to {MAX_NAME} printable characters.")
        document = rule.model_dump(mode="json")
        for condition in (one for group in document["groups"] for one in group["conditions"]):
            condition["songs"] = [self._number(song) for song in condition["songs"]]
        saved = SavedRule(name, document, time.time())
        row = {"name": name, "document": saved.document, "saved_at": saved.saved_at}
        self._execute(rules.insert().prefix_with("OR REPLACE").values(**row))
        return saved

    def _number(self, song: int | str) -> int:
        return find_titled(snapshot_under(self._library, None), song) if isinstance(song, str) else song

    def delete(self, name: str) -> SavedRule:
        """Delete a rule and return it; raises NotFoundError if there is no rule with this name."""
        found = self.get(name)
        self._execute(rules.delete().where(rules.c.name == name))
        return found
