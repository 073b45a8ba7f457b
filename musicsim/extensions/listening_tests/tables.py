"""Tables of listening tests. The document of a test identifies songs by hashes, not by ids."""

import sqlalchemy as sa

from musicsim.library.db.schema import IN_SMALL_COPY, metadata

listening_tests = sa.Table(
    "listening_tests",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("document", sa.Text, nullable=False),  # JSON
    sqlite_autoincrement=True,
    info=IN_SMALL_COPY,
)

# Participants of a test, each with a link.
test_listeners = sa.Table(
    "test_listeners",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("test_id", sa.ForeignKey("listening_tests.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("number", sa.Integer, nullable=False),  # within the test, from 0; determines the order of the pairs
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False, unique=True),
    sa.Column("consented_at", sa.Float),
    sqlite_autoincrement=True,
    info=IN_SMALL_COPY,
)

grades = sa.Table(
    "grades",
    metadata,
    sa.Column("listener_id", sa.ForeignKey("test_listeners.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("pair", sa.Integer, primary_key=True),  # index in the document
    sa.Column("category", sa.Integer),  # 0 not, 1 somewhat, 2 very similar; None: could not be played
    sa.Column("fine", sa.Integer),  # 0 to 100; None as above
    sa.Column("graded_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)
