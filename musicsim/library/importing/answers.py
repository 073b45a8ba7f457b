"""Answers of listeners from and to files: songs are found here, whatever they were called elsewhere."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa

from musicsim.errors import LibraryError
from musicsim.library.db import schema
from musicsim.library.db.columns import some_ids
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.disk.csv_cells import shortened
from musicsim.library.importing.answer_csv import FiledAnswer, FiledSong, read_answers, write_answers
from musicsim.library.importing.matching import Matcher
from musicsim.library.importing.places import PlaceIndex
from musicsim.library.importing.records import NamedSong
from musicsim.library.store import Store
from musicsim.library.stores.all_opinions import Opinions
from musicsim.library.stores.answers import Answer, answer_row
from musicsim.public import is_public


@dataclass(frozen=True, slots=True)
class AnswersImport:
    """What became of a file of answers."""

    n_read: int  # answers in the file
    n_added: int  # answers that are new to the library
    n_known: int  # answers that it has already
    n_unmatched: int  # answers about a song that it does not have
    # why rows were left out, a sentence each with the row's line; the first 20, and how many more there are
    problems: tuple[str, ...]


def export_answers(library: Store, file: str | Path | BinaryIO, *, of: Opinions | None = None) -> int:
    """Write all answers of a library, or others about its songs, as CSV for another library or program; how many.

    The columns are those of :mod:`musicsim.library.importing.answer_csv`. What a path names is replaced when all is
    written, and stays as it is otherwise: LibraryError if the file cannot be written.
    """
    filed = filed_answers(library, of=of)
    try:
        if isinstance(file, str | Path):
            Path(file).parent.stat()  # a folder that is not there is a slip, not one to be made
            with atomic_path(Path(file)) as temporary, temporary.open("wb") as stream:
                write_answers(stream, filed)
        else:
            write_answers(file, filed)
    except OSError as error:
        raise LibraryError(f"{file}: cannot be written ({error.strerror}). Name another file.") from error
    return len(filed)


def filed_answers(library: Store, *, of: Opinions | None = None) -> list[FiledAnswer]:
    """All answers of a library, or others about its songs, as a file has them."""
    answers = (of or library).answers.all()
    songs = _filed_songs(library, {song_id for answer in answers for song_id in answer.song_ids})
    return [
        FiledAnswer(
            a.created_at, a.listener, a.form, tuple(songs[i] for i in a.song_ids), a.chosen, a.is_random,
            a.foreseen, a.model,
        )
        for a in answers
        if songs.keys() >= set(a.song_ids)  # one may have been forgotten this moment
    ]  # fmt: skip


def import_answers(library: Store, file: str | Path | BinaryIO) -> AnswersImport:
    """Take the answers of a file that :func:`export_answers` wrote, or of the odd-one-out survey of bliss.

    Songs are found by the bytes of their file, else by its path's end, else by artist and title. An answer that the
    library has is not taken again: it is known by its time, listener, songs and choice, and where the file tells no
    time, by how often the others occur.

    Raises LibraryError if the file cannot be read, or holds no answers; nothing is written then.
    """
    label = str(file if isinstance(file, str | Path) else getattr(file, "name", "CSV"))
    try:
        with open(file, "rb") if isinstance(file, str | Path) else nullcontext(file) as stream:
            rows = list(read_answers(stream, label))
    except OSError as error:
        raise LibraryError(f"{label}: cannot be read ({error.strerror}).") from error
    filed = [row for _, row in rows if not isinstance(row, str)]
    found = _found(library, {song for row in filed for song in row.songs})
    n_unmatched = sum(any(found[song] is None for song in row.songs) for row in filed)
    seen, problems, n_known = _Seen(library.answers.all()), [], 0
    added: list[dict[str, Any]] = []
    for line, row in rows:
        try:
            entry, is_dated = _filed_row(row, found)
        except ValueError as error:
            problems.append(f"Line {line}: {error}")
            continue
        if seen.has(entry, is_dated=is_dated):
            n_known += 1
        else:
            added.append(entry)
    library.answers.insert(added)
    return AnswersImport(len(rows), len(added), n_known, n_unmatched, shortened(problems))


def _filed_songs(library: Store, ids: set[int]) -> dict[int, FiledSong]:
    """What to call songs in a file, by id."""
    s, f = schema.songs.c, schema.files.c
    chosen = some_ids(ids)
    paths = sa.select(f.song_id, f.path).where(f.song_id.in_(chosen)).order_by(f.path.desc())
    songs = sa.select(s.id, s.content_hash, s.artist, s.title, s.last_path).where(s.id.in_(chosen))
    with library.engine.connect() as connection:
        path_of = {row.song_id: row.path for row in connection.execute(paths)}
        rows = connection.execute(songs).all()
    found = {}
    for row in rows:
        path = path_of.get(row.id, row.last_path)
        place = (path.name if is_public() else str(path)) if path else ""
        found[row.id] = FiledSong(row.content_hash, row.artist or "", row.title, place)
    return found


def _found(library: Store, songs: set[FiledSong]) -> dict[FiledSong, int | None]:
    """The library's song, or None, for each that a file names."""
    s = schema.songs.c
    hashes = sa.func.json_each(json.dumps([song.content_hash for song in songs])).table_valued("value")
    with library.engine.connect() as connection:
        query = sa.select(s.content_hash, s.id).where(s.content_hash.in_(sa.select(hashes.c.value)))
        by_hash = {row.content_hash: row.id for row in connection.execute(query)}
    found: dict[FiledSong, int | None] = {song: by_hash.get(song.content_hash) for song in songs}
    missed = [song for song, song_id in found.items() if song_id is None]
    bare = [song for song in missed if song == FiledSong(path=song.path)]
    if bare:  # the whole file name has to agree, with that of one song only; it may be a number
        f = schema.files.c
        with library.engine.connect() as connection:
            paths = connection.execute(sa.select(f.path, f.song_id, f.missing_since).order_by(f.path)).all()
        places = PlaceIndex((path, song_id, gone is None) for path, song_id, gone in paths)
        found |= {song: ending.song_id for song in bare if (ending := places.by_end(song.path))}
    if len(missed) > len(bare):
        matcher = Matcher(library)
        for song in set(missed).difference(bare):
            names = (song.artist, song.title) if song.artist and song.title else ("", "")
            match = matcher.find(NamedSong(*names, place=song.path))
            found[song] = match.song_id if match else None
    return found


def _filed_row(answer: FiledAnswer | str, found: Mapping[FiledSong, int | None]) -> tuple[dict[str, Any], bool]:
    """An answer of a file as the table has it, and whether the file has its time; ValueError if it is of no use."""
    if isinstance(answer, str):
        raise ValueError(f"{answer}.")
    ids = []
    for song in answer.songs:
        song_id = found[song]
        if song_id is None:
            called = f"“{song.title}” by {song.artist or 'an unknown artist'}" if song.title else f"“{song.path}”"
            raise ValueError(f"{called} is not in this library.")
        ids.append(song_id)
    is_dated = answer.created_at is not None
    when = time.time() if answer.created_at is None else answer.created_at
    row = answer_row(
        when, answer.listener, answer.form, ids, answer.chosen, answer.is_random, answer.foreseen, answer.model
    )
    return row, is_dated


class _Seen:
    """Which answers a library has, so that a file that is read again adds nothing."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._dated: set[tuple[Any, ...]] = set()
        self._n: Counter[tuple[Any, ...]] = Counter()
        for a in answers:
            said = (a.listener, a.form, a.song_ids, a.chosen)
            self._dated.add((a.created_at, *said))
            self._n[said] += 1

    def has(self, row: dict[str, Any], *, is_dated: bool) -> bool:
        """Whether an answer is there; one that is not counts as there from now on, if it is dated."""
        ids = tuple(row[song.name] for song in schema.ANSWER_SONGS if row.get(song.name) is not None)
        said = (row["listener"], row["form"], ids, row["chosen"])
        if is_dated:
            dated = (row["created_at"], *said)
            is_there = dated in self._dated
            self._dated.add(dated)
            return is_there
        self._n[said] -= 1
        return self._n[said] >= 0
