"""The tables of trials and of their turns: a turn is a song that a model chose for a queue."""

import sqlalchemy as sa

from musicsim.library.db.schema import IN_SMALL_COPY, metadata

trials = sa.Table(
    "radio_trials",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("model_a", "name_a", "model_b", "name_b")),
    sa.Column("random_state", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    *(sa.Column(name, sa.Float) for name in ("ended_at", "revealed_at")),
    info=IN_SMALL_COPY,
)

# Songs have no foreign keys: if the listener deletes a song that a model chose, its outcome must stay.
turns = sa.Table(
    "radio_turns",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.ForeignKey("radio_trials.id", ondelete="CASCADE"), nullable=False, index=True),
    *(sa.Column(name, sa.Integer, nullable=False) for name in ("queue", "previous_id", "song_a", "song_b")),
    sa.Column("arm", sa.Text, nullable=False),
    sa.Column("made_at", sa.Float, nullable=False),
    # null until the song was played or skipped
    *(sa.Column(name, sa.Boolean) for name in ("is_skip", "is_first")),
    *(sa.Column(name, sa.Float) for name in ("event_at", "outcome")),
    info=IN_SMALL_COPY,
)
