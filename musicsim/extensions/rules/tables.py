"""The table of saved rules."""

import sqlalchemy as sa

from musicsim.library.db.schema import IN_SMALL_COPY, metadata


def _is_rule(value: object) -> bool:
    from musicsim.extensions.rules.rule import make_rule  # slow, and every command imports the tables

    try:
        return isinstance(value, dict) and bool(make_rule(**value))
    except (TypeError, ValueError):
        return False


rules = sa.Table(
    "rules",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("document", sa.JSON, nullable=False, info={"check": _is_rule}),
    sa.Column("saved_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)
