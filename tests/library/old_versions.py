"""Libraries as older versions of the program wrote them."""

import sqlite3
from pathlib import Path

VERSION_1 = Path(__file__).with_name("version_1.sql")


def make_version_1(folder, music, digest="abc"):
    """A library as the first version wrote it, with one song that has been played and put on a list."""
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "library.sqlite") as old:
        old.executescript(VERSION_1.read_text())
        old.execute("INSERT INTO meta VALUES ('schema_version', '1')")
        old.execute("INSERT INTO roots VALUES (?, 1.0)", (str(music),))
        old.execute(
            "INSERT INTO songs VALUES (7, ?, 'One', 'Me', NULL, NULL, 1, 1999, 'jazz', 1.5, '', x'00', 1, 2.0)",
            (digest,),
        )
        old.execute("INSERT INTO files VALUES (?, 7, ?, 10, 20)", (str(music / "one.flac"), str(music)))
        old.execute("INSERT INTO failures VALUES (?, 'no sound', 1, 2, 3.0)", (str(music / "x.mp3"),))
        old.execute("INSERT INTO plays VALUES ('me', 7, 3)")
        old.execute("INSERT INTO playlists VALUES (1, 'mine', NULL, 'saved', 4.0)")
        old.execute("INSERT INTO playlist_songs VALUES (1, 0, 7)")
    old.close()
