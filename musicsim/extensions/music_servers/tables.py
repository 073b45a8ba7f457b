"""Tables of the songs and playlists of music servers."""

import sqlalchemy as sa

from musicsim.library.db.schema import IN_SMALL_COPY, metadata


def _is_candidates(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(song_id, int) for song_id in value))


# Songs as music servers list them, each as one user of the server sees it.
server_songs = sa.Table(
    "server_songs",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),  # the name of the connection: one server and one user of it
    sa.Column("id", sa.Text, primary_key=True),  # as the server is asked with it
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="SET NULL"), index=True),  # None: not matched
    sa.Column("how", sa.Text, nullable=False),  # it was matched, or why it was not
    sa.Column("candidates", sa.JSON(none_as_null=True), info={"check": _is_candidates}),  # for a person to choose from
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("artist", sa.Text, nullable=False),
    sa.Column("album", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("mbid", sa.Text, nullable=False),
    sa.Column("duration_s", sa.Float),
    sa.Column("plays", sa.Integer, nullable=False),
    sa.Column("rating", sa.Integer, nullable=False),  # 1 to 5; 0: none
    sa.Column("is_starred", sa.Boolean, nullable=False),
    sa.Column("played_at", sa.Float),  # last, where the server tells
)

# Every form in which an id is handed out or asked with, such as 12 and so-12.
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
    sa.Column("id", sa.Text, nullable=False),  # of the playlist on the server
    sa.Column("request", sa.JSON(none_as_null=True)),  # what it is drawn with again and again; None: it is as it is
    sa.Column("written_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)
