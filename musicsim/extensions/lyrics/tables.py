"""The table of words in lyrics."""

import sqlalchemy as sa

from musicsim.library.db.schema import metadata


def _is_word_counts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(n, int) for n in value.values())


# Word counts without the text; empty for files without lyrics, so that they are not opened again.
lyrics = sa.Table(
    "lyrics",
    metadata,
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("words", sa.JSON, nullable=False, info={"check": _is_word_counts}),  # counts by word
    sa.Column("mtime_ns", sa.Integer, nullable=False),  # of the file, when it was read
    sa.Column("lrc_mtime_ns", sa.Integer),  # of the .lrc file next to it, or None
    sa.Column("read_at", sa.Float, nullable=False),
)
