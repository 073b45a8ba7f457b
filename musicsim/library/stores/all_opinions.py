"""What listeners said of songs, answers and models: kept in a library, or of one visitor in memory."""

import time

import numpy as np
import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.db.database import Write
from musicsim.library.stores.answers import AnswerStore
from musicsim.library.stores.opinions import JudgementStore, PreferenceStore

_MAX_PAGES = 1024  # of 4 kB, of what one visitor says


class Opinions:
    """Answers, judgements, preferences and thumbs in one database."""

    def __init__(self, engine: sa.Engine, write: Write) -> None:
        self._opinions, self._write_opinion = engine, write
        self.preferences = PreferenceStore(engine, write)
        self.answers = AnswerStore(engine, write)
        self.judgements = JudgementStore(engine, write)

    def feedback(self) -> dict[int, int]:
        """Thumbs by song id: +1 or -1."""
        f = schema.feedback.c
        with self._opinions.connect() as connection:
            return {row.song_id: row.value for row in connection.execute(sa.select(f.song_id, f.value))}

    def set_feedback(self, song_id: int, value: int) -> None:
        """Store a thumb, +1 or -1; 0 takes it back."""
        with self._write_opinion() as connection:
            connection.execute(schema.feedback.delete().where(schema.feedback.c.song_id == song_id))
            if value:
                connection.execute(
                    schema.feedback.insert().values(song_id=song_id, value=int(np.sign(value)), created_at=time.time())
                )


def opinions_in_memory() -> Opinions:
    """Opinions that nobody else sees, and that go with the object; whether their songs are there is not checked."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})
    tables = (schema.answers, schema.judgements, schema.preferences, schema.feedback)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count={_MAX_PAGES}")
        schema.metadata.create_all(connection, tables=tables)
    return Opinions(engine, engine.begin)
