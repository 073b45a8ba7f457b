"""The table of saved rules."""

import sqlalchemy as sa

from musicsim.library import IN_SMALL_COPY, metadata


def _is_rule(value: object) -> bool:
    """Check the shape only: every command imports the tables, and pydantic takes long to import."""
    groups = value.get("groups") if isinstance(value, dict) else None
    return isinstance(groups, list) and all(isinstance(group, dict) for group in groups)


rules = sa.Table(
    "rules",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("document", sa.JSON, nullable=False, info={"check": _is_rule}),
    sa.Column("saved_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)
