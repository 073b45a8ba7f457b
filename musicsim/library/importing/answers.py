"""Export and import of listeners' answers, with songs matched by hash, path or names."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa

from musicsim.errors import LibraryError
from musicsim.library.db import schema, some_ids
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.disk.csv_cells import as_csv, shorten_problems
from musicsim.library.importing.answer_csv import (
    ANSWER_COLUMNS,
    FiledAnswer,
    FiledSong,
    FiledVotes,
    answer_cells,
    read_answers,
)
from musicsim.library.importing.matching import Matcher
from musicsim.library.importing.places import PlaceIndex
from musicsim.library.importing.records import NamedSong
from musicsim.library.library import Library
from musicsim.library.stores.judgments import Opinions, judgment_row
from musicsim.public import is_public
from musicsim.wording import count


@dataclass(frozen=True, slots=True)
class VotedComparisons:
    """Numbers of comparisons in a public data set; each vote is an answer."""

    n_used: int  # the library has all three songs
    n_unmatched: int  # the library lacks a song
    n_undecided: int  # used, but without a majority

    def __str__(self) -> str:
        undecided = f" ({self.n_undecided:,} without a majority)" if self.n_undecided else ""
        return f"{count(self.n_used, 'comparison')} used{undecided}, {self.n_unmatched:,} unmatched"


@dataclass(frozen=True, slots=True)
class AnswersImport:
    n_read: int  # number of answers in the file
    n_added: int  # number of answers that are new to the library
    n_known: int  # number of answers that the library already has
    n_unmatched: int  # number of answers about a song that the library does not have
    problems: tuple[str, ...]  # messages about the first 20 rejected rows, with line numbers; then the number of others
    comparisons: VotedComparisons | None = None  # None if the file does not contain votes


def export_answers(library: Library, file: str | Path | BinaryIO, *, opinions: Opinions | None = None) -> int:
    """Write all answers in a library, or those in `opinions` about its songs, as CSV; return their number."""
    filed = collect_answers(library, opinions=opinions)
    data = as_csv(ANSWER_COLUMNS, map(answer_cells, filed))
    try:
        if isinstance(file, str | Path):
            Path(file).parent.stat()  # a missing folder is a mistake and is not created
            with atomic_path(Path(file)) as temporary:
                temporary.write_bytes(data)
        else:
            file.write(data)
    except OSError as error:
        raise LibraryError(f"{file}: cannot be written ({error.strerror}). Choose another file.") from error
    return len(filed)


def collect_answers(library: Library, *, opinions: Opinions | None = None) -> list[FiledAnswer]:
    """Return all answers in a library, or those in `opinions` about its songs, with the songs' names."""
    answers = (opinions or library).judgments.answers()
    s, f = schema.songs.c, schema.files.c
    chosen = some_ids({song_id for answer in answers for song_id in answer.song_ids})
    paths = sa.select(f.song_id, f.path).where(f.song_id.in_(chosen)).order_by(f.path.desc())
    rows = sa.select(s.id, s.content_hash, s.artist, s.title, s.last_path).where(s.id.in_(chosen))
    songs = {}
    with library.engine.connect() as connection:
        path_of = {row.song_id: row.path for row in connection.execute(paths)}
        for row in connection.execute(rows):
            path = path_of.get(row.id, row.last_path)
            place = (path.name if is_public() else str(path)) if path else ""
            songs[row.id] = FiledSong(row.content_hash, row.artist or "", row.title, place)
    return [
        FiledAnswer(
            a.created_at, a.listener, a.kind, tuple(songs[i] for i in a.song_ids), a.chosen, a.is_random,
            a.foreseen, a.model,
        )
        for a in answers
        if songs.keys() >= set(a.song_ids)  # a song may have been removed in the meantime
    ]  # fmt: skip


def import_answers(library: Library, file: str | Path | BinaryIO) -> AnswersImport:
    """Import answers from a file written by :func:`export_answers`, bliss's survey, or a public data set.

    Songs are matched by the hash of their file, then by the end of its path, then by artist and title. Known answers
    are skipped. The votes in a public data set become answers by one listener, who has the name of the data set.
    Raises LibraryError, and writes nothing, if the file cannot be read or has no answers.
    """
    label = str(file if isinstance(file, str | Path) else getattr(file, "name", "CSV"))
    try:
        with open(file, "rb") if isinstance(file, str | Path) else nullcontext(file) as stream:
            found = list(read_answers(stream, label))
    except OSError as error:
        raise LibraryError(f"{label}: cannot be read ({error.strerror}).") from error
    matches = match_songs(library, {song for _, row in found if not isinstance(row, str) for song in row.songs})
    voted = [row for _, row in found if isinstance(row, FiledVotes)]
    rows = [(line, a) for line, row in found for a in (row.answers() if isinstance(row, FiledVotes) else (row,))]
    n_unmatched = sum(any(matches[song] is None for song in row.songs) for _, row in rows if not isinstance(row, str))
    # each answer in the library matches only one undated answer, so a listener may give the same answer twice
    stored = library.judgments.answers()
    undated = Counter((a.listener, a.kind, a.song_ids, a.chosen) for a in stored)
    dated = {(a.created_at, a.listener, a.kind, a.song_ids, a.chosen) for a in stored}
    added: list[dict[str, Any]] = []
    problems: dict[str, None] = {}  # the votes of a comparison share one problem
    n_known = 0
    for line, row in rows:
        try:
            if isinstance(row, str):
                raise ValueError(f"{row}.")
            entry = _to_table_row(row, matches)
        except ValueError as error:
            problems[f"Line {line}: {error}"] = None
            continue
        ids = tuple(entry[song.name] for song in schema.JUDGED_SONGS if entry[song.name] is not None)
        key = (entry["listener"], entry["kind"], ids, entry["chosen"])
        if row.created_at is None:
            undated[key] -= 1
            is_known = undated[key] >= 0
        else:
            is_known = (entry["created_at"], *key) in dated
            dated.add((entry["created_at"], *key))
        if is_known:
            n_known += 1
        else:
            added.append(entry)
    library.judgments.insert(added)
    counts = _count_comparisons(voted, matches) if voted else None
    return AnswersImport(len(rows), len(added), n_known, n_unmatched, shorten_problems([*problems]), counts)


def _count_comparisons(voted: list[FiledVotes], matches: Mapping[FiledSong, int | None]) -> VotedComparisons:
    ids = [{matches[song] for song in row.songs} for row in voted]
    used = [row for row, some in zip(voted, ids, strict=True) if None not in some and len(some) == len(row.songs)]
    return VotedComparisons(len(used), sum(None in some for some in ids), sum(not row.has_majority for row in used))


def match_songs(library: Library, songs: set[FiledSong]) -> dict[FiledSong, int | None]:
    """Map each song in a file to the id of a song in the library, or to None."""
    s = schema.songs.c
    hashes = sa.func.json_each(json.dumps([song.content_hash for song in songs])).table_valued("value")
    with library.engine.connect() as connection:
        query = sa.select(s.content_hash, s.id).where(s.content_hash.in_(sa.select(hashes.c.value)))
        by_hash = {row.content_hash: row.id for row in connection.execute(query)}
    matches: dict[FiledSong, int | None] = {song: by_hash.get(song.content_hash) for song in songs}
    missed = [song for song, song_id in matches.items() if song_id is None]
    bare = [song for song in missed if song == FiledSong(path=song.path)]
    if bare:  # the file name, which may be just a number, must belong to exactly one song
        f = schema.files.c
        with library.engine.connect() as connection:
            paths = connection.execute(sa.select(f.path, f.song_id, f.missing_since).order_by(f.path)).all()
        places = PlaceIndex((path, song_id, gone is None) for path, song_id, gone in paths)
        matches |= {song: ending.song_id for song in bare if (ending := places.find_by_end(song.path))}
    if len(missed) > len(bare):
        matcher = Matcher(library)
        for song in set(missed).difference(bare):
            names = (song.artist, song.title) if song.artist and song.title else ("", "")
            match = matcher.find(NamedSong(*names, place=song.path))
            matches[song] = match.song_id if match else None
    return matches


def _to_table_row(answer: FiledAnswer, matches: Mapping[FiledSong, int | None]) -> dict[str, Any]:
    """Return an answer as a table row. Raises ValueError if a song is unknown or the answer is not valid."""
    ids = []
    for song in answer.songs:
        song_id = matches[song]
        if song_id is None:
            name = f"“{song.title}” by {song.artist or 'an unknown artist'}" if song.title else f"“{song.path}”"
            raise ValueError(f"{name} is not in this library.")
        ids.append(song_id)
    created_at = time.time() if answer.created_at is None else answer.created_at
    context = {"is_random": answer.is_random, "foreseen": answer.foreseen, "model": answer.model}
    return judgment_row(created_at, answer.listener, answer.form, ids, answer.chosen, context)
