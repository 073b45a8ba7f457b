"""Tables of the songs and playlists of music servers."""

import sqlalchemy as sa

from musicsim.library.db.schema import IN_SMALL_COPY, metadata


def _is_candidates(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(song_id, int) for song_id in value))


# Songs of music servers, each for one user of the server.
server_songs = sa.Table(
    "server_songs",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),  # name of the connection: one server and one of its users
    sa.Column("id", sa.Text, primary_key=True),  # as the server expects it
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="SET NULL"), index=True),  # None: not matched
    sa.Column("how", sa.Text, nullable=False),  # method of the match, or the reason for its absence
    sa.Column("candidates", sa.JSON(none_as_null=True), info={"check": _is_candidates}),  # songs to choose from
    *(sa.Column(name, sa.Text, nullable=False) for name in ("title", "artist", "album", "path", "mbid")),
    sa.Column("duration_s", sa.Float),
    sa.Column("plays", sa.Integer, nullable=False),
    sa.Column("rating", sa.Integer, nullable=False),  # 1 to 5, or 0
    sa.Column("is_starred", sa.Boolean, nullable=False),
    sa.Column("played_at", sa.Float),  # last play, if the server reports it
)

# All forms of a server's ids that players use, such as 12 and so-12.
server_ids = sa.Table(
    "server_ids",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("form", sa.Text, primary_key=True, index=True),
    sa.Column("id", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["server", "id"], ["server_songs.server", "server_songs.id"], ondelete="CASCADE"),
    sa.Index("ix_server_ids_id", "server", "id"),
)

# Playlists that were written to a server.
server_lists = sa.Table(
    "server_lists",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, nullable=False),  # on the server
    sa.Column("request", sa.JSON(none_as_null=True)),  # to regenerate it; None if it is never regenerated
    sa.Column("written_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)
