"""What can be heard of songs, as this version of the program says it: columns of the table of songs."""

from collections.abc import Mapping
from dataclasses import asdict

import sqlalchemy as sa

from musicsim.audio import DESCRIPTOR_VERSION, Descriptors
from musicsim.library.db import schema
from musicsim.library.db.database import Tables


class DescriptorStore(Tables):
    """Descriptors of the songs of one library."""

    def n_outdated(self) -> int:
        """How many songs have none of this version, missing songs among them."""
        return self._value(sa.select(sa.func.count()).where(_OUTDATED)) or 0

    def outdated(self) -> dict[int, str]:
        """The hashes of these songs, by their id."""
        s = schema.songs.c
        rows = self._rows(sa.select(s.id, s.content_hash).where(_OUTDATED).order_by(s.id))
        return {row.id: row.content_hash for row in rows}

    def save(self, descriptors: Mapping[int, Descriptors]) -> None:
        """Replace those of some songs, by their id."""
        with self._write() as connection:
            for song_id, found in descriptors.items():
                values = asdict(found) | {"descriptor_version": DESCRIPTOR_VERSION}
                connection.execute(schema.songs.update().where(schema.songs.c.id == song_id).values(**values))


_OUTDATED = schema.songs.c.descriptor_version != DESCRIPTOR_VERSION
