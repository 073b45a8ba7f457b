"""What listeners answered when they were asked to compare songs: kept one answer a row, read and written as CSV."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import sqlalchemy as sa

from musicsim.errors import LibraryError, NotFoundError
from musicsim.library.db import schema
from musicsim.library.disk.arrays import atomic_path

if TYPE_CHECKING:  # which are made of stores
    from musicsim.library.importing.answer_csv import FiledAnswer, FiledSong
    from musicsim.library.importing.matching import Matcher

__all__ = [
    "FORMS",
    "Answer",
    "AnswerStore",
    "AnswersImport",
    "QuestionKey",
    "comparisons",
    "listener_name",
    "question_key",
    "shortened",
]

FORMS = ("odd", "like")
"""Which one does not belong? Which one is more like the first?"""

_FEWEST, _MOST = 3, len(schema.ANSWER_SONGS)  # songs of a question
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes
    ----------
    created_at : float
        Seconds since 1970, to the microsecond.
    listener : str
    form : str
        One of :data:`FORMS`.
    song_ids : tuple of int
        Three or four, as they were shown; of "like", the song asked about comes first.
    chosen : int or None
        The place in `song_ids`, from 1 on where the form is "like"; None where the listener was unsure.
    is_random : bool
        Whether chance alone drew the songs: such answers estimate without bias how often a model is right.
    foreseen : bool or None
        Whether the model then in use would have said the same; None where there was none, or nothing to say.
    model : str
        The name of that model, which outlives it.
    """

    id: int
    created_at: float
    listener: str
    form: str
    song_ids: tuple[int, ...]
    chosen: int | None
    is_random: bool
    foreseen: bool | None
    model: str


@dataclass(frozen=True, slots=True)
class AnswersImport:
    """What became of a file of answers.

    Attributes
    ----------
    n_read : int
        Answers in the file.
    n_added : int
        Answers that are new to the library.
    n_known : int
        Answers that it has already.
    n_unmatched : int
        Answers about a song that it does not have.
    problems : tuple of str
        Why rows were left out, a sentence each with the row's line; the first 20, and how many more there are.
    """

    n_read: int
    n_added: int
    n_known: int
    n_unmatched: int
    problems: tuple[str, ...]


def comparisons(answer: Answer) -> list[tuple[int, int, int, int]]:
    """What an answer says of distances, as comparisons (i, j, k, l) of song ids: d(i, j) < d(k, l).

    Parameters
    ----------
    answer : Answer

    Returns
    -------
    list of (int, int, int, int)
        Of the odd one out among three: the other two are nearer to one another than either is to it. Among four:
        the same for every pair of the others. Of "like": the first song is nearer to the one chosen than to each
        other one. None of an answer that is unsure.
    """
    if answer.chosen is None:
        return []
    chosen = answer.song_ids[answer.chosen]
    others = [song for song in answer.song_ids if song != chosen]
    if answer.form == "like":
        first, *rest = others
        return [(first, chosen, first, other) for other in rest]
    return [(a, b, near, chosen) for a, b in combinations(others, 2) for near in (a, b)]


QuestionKey = tuple[str, tuple[int, ...]]


def question_key(form: str, songs: Sequence[int]) -> QuestionKey:
    """What tells questions apart: the same for the same question, in whatever order its songs are shown."""
    n_fixed = int(form == "like")  # the song that is asked about stays the first
    return form, (*songs[:n_fixed], *sorted(songs[n_fixed:]))


class AnswerStore:
    """Answers of listeners in one library.

    An answer goes with the first of its songs that is forgotten.

    Parameters
    ----------
    engine : sa.Engine
        To read with.
    writing : sa.Engine
        To write with. An answer is no change that pages have to be drawn again for: the library's revision stays.
    matcher : callable
        Makes what finds songs of the library by their names, where a file is read.
    """

    def __init__(self, engine: sa.Engine, writing: sa.Engine, matcher: "Callable[[], Matcher]") -> None:
        self._engine, self._writing, self._matcher = engine, writing, matcher

    # --- one by one ---------------------------------------------------------------------------

    def add(
        self,
        listener: str,
        form: str,
        song_ids: Sequence[int],
        chosen: int | None,
        *,
        is_random: bool = False,
        foreseen: bool | None = None,
        model: str = "",
    ) -> int:
        """Keep one answer; the arguments are those of :class:`Answer`.

        Returns
        -------
        int
            The number of the answer, which is given to no other one.

        Raises
        ------
        ValueError
            If the answer makes no sense: it names the argument at fault.
        NotFoundError
            If a song is not in the library.
        """
        row = _row(time.time(), listener, form, song_ids, chosen, is_random, foreseen, model)
        try:
            with self._writing.begin() as connection:
                key = connection.execute(schema.answers.insert().values(**row)).inserted_primary_key
        except sa.exc.IntegrityError as error:
            raise NotFoundError(
                f"song_ids={tuple(song_ids)}: one of these songs is no longer in the library. Try again."
            ) from error
        return int(key[0])  # type: ignore[index]

    def all(self, listener: str | None = None) -> list[Answer]:
        """Answers, oldest first; all, or those of one listener."""
        a = schema.answers.c
        songs = schema.ANSWER_SONGS
        query = sa.select(
            a.id, a.created_at, a.listener, a.form, a.chosen, a.is_random, a.foreseen, a.model, *songs
        ).order_by(a.created_at, a.id)
        if listener is not None:
            query = query.where(a.listener == listener)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return [Answer(*row[:4], tuple(i for i in row[8:] if i is not None), *row[4:8]) for row in rows]

    def count(self, listener: str | None = None) -> int:
        """How many answers there are; all, or those of one listener."""
        query = sa.select(sa.func.count()).select_from(schema.answers)
        if listener is not None:
            query = query.where(schema.answers.c.listener == listener)
        with self._engine.connect() as connection:
            return connection.scalar(query) or 0

    def mark(self) -> tuple[int, int]:
        """How many answers there are, and the number of the last, which is never given again: others for others."""
        a = schema.answers.c
        with self._engine.connect() as connection:
            n, last = connection.execute(sa.select(sa.func.count(), sa.func.max(a.id))).one()
        return n, last or 0

    def forget(self, answer_id: int) -> None:
        """Take an answer back; one that is not there is no error."""
        with self._writing.begin() as connection:
            connection.execute(schema.answers.delete().where(schema.answers.c.id == answer_id))

    # --- listeners ----------------------------------------------------------------------------

    def listeners(self) -> list[str]:
        """Everybody who has answered, by name."""
        listener = schema.answers.c.listener
        with self._engine.connect() as connection:
            return list(connection.scalars(sa.select(listener).distinct().order_by(listener)))

    def rename(self, old: str, new: str) -> None:
        """Give a listener another name; who has it already becomes one with this one.

        Raises
        ------
        ValueError
            If `new` is no name.
        """
        change = schema.answers.update().where(schema.answers.c.listener == old)
        with self._writing.begin() as connection:
            connection.execute(change.values(listener=listener_name(new)))

    def forget_listener(self, name: str) -> int:
        """Forget all answers of a listener; how many they were."""
        with self._writing.begin() as connection:
            return connection.execute(
                schema.answers.delete().where(schema.answers.c.listener == name)
            ).rowcount

    # --- files --------------------------------------------------------------------------------

    def write_csv(self, file: str | Path | BinaryIO) -> int:
        """Write all answers as CSV, for another library or another program.

        Parameters
        ----------
        file : path, or binary file to write to
            What a path names is replaced when all is written, and stays as it is otherwise.

        Returns
        -------
        int
            How many were written. The columns are those of :mod:`musicsim.library.importing.answer_csv`.

        Raises
        ------
        LibraryError
            If the file cannot be written.
        """
        from musicsim.library.importing.answer_csv import FiledAnswer, write_answers

        answers = self.all()
        songs = self._filed_songs({song_id for answer in answers for song_id in answer.song_ids})
        filed = [
            FiledAnswer(
                a.created_at, a.listener, a.form, tuple(songs[i] for i in a.song_ids), a.chosen, a.is_random,
                a.foreseen, a.model,
            )
            for a in answers
            if songs.keys() >= set(a.song_ids)  # one may have been forgotten this moment
        ]  # fmt: skip
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

    def read_csv(self, file: str | Path | BinaryIO) -> AnswersImport:
        """Take the answers of a file.

        Songs are found by the bytes of their file, else by its path's end, else by artist and title. An answer that
        the library has is not taken again: it is known by its time, listener, songs and choice, and where the file
        tells no time, by how often the others occur.

        Parameters
        ----------
        file : path, or binary file to read from
            What :meth:`write_csv` wrote, or the odd-one-out survey of bliss.

        Returns
        -------
        AnswersImport

        Raises
        ------
        LibraryError
            If the file cannot be read, or holds no answers; nothing is written then.
        """
        from musicsim.library.importing.answer_csv import read_answers

        label = str(file if isinstance(file, str | Path) else getattr(file, "name", "CSV"))
        try:
            with open(file, "rb") if isinstance(file, str | Path) else nullcontext(file) as stream:
                rows = list(read_answers(stream, label))
        except OSError as error:
            raise LibraryError(f"{label}: cannot be read ({error.strerror}).") from error
        filed = [row for _, row in rows if not isinstance(row, str)]
        found = self._found({song for row in filed for song in row.songs})
        n_unmatched = sum(any(found[song] is None for song in row.songs) for row in filed)
        seen, problems, n_known = _Seen(self.all()), [], 0
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
        if added:
            with self._writing.begin() as connection:
                connection.execute(schema.answers.insert(), added)
        return AnswersImport(len(rows), len(added), n_known, n_unmatched, shortened(problems))

    def _filed_songs(self, ids: set[int]) -> "dict[int, FiledSong]":
        """What to call songs in a file, by id."""
        from musicsim.library.db.columns import some_ids
        from musicsim.library.importing.answer_csv import FiledSong

        s, f = schema.songs.c, schema.files.c
        chosen = some_ids(ids)
        paths = sa.select(f.song_id, f.path).where(f.song_id.in_(chosen)).order_by(f.path.desc())
        songs = sa.select(s.id, s.content_hash, s.artist, s.title, s.last_path).where(s.id.in_(chosen))
        with self._engine.connect() as connection:
            path_of = {row.song_id: row.path for row in connection.execute(paths)}
            rows = connection.execute(songs).all()
        return {
            row.id: FiledSong(
                row.content_hash, row.artist or "", row.title, str(path_of.get(row.id, row.last_path) or "")
            )
            for row in rows
        }

    def _found(self, songs: "set[FiledSong]") -> "dict[FiledSong, int | None]":
        """The library's song for each that a file names; None where it has none."""
        from musicsim.library.importing.answer_csv import FiledSong

        s = schema.songs.c
        hashes = sa.func.json_each(json.dumps([song.content_hash for song in songs])).table_valued("value")
        with self._engine.connect() as connection:
            query = sa.select(s.content_hash, s.id).where(s.content_hash.in_(sa.select(hashes.c.value)))
            by_hash = {row.content_hash: row.id for row in connection.execute(query)}
        found: dict[FiledSong, int | None] = {song: by_hash.get(song.content_hash) for song in songs}
        missed = [song for song, song_id in found.items() if song_id is None]
        bare = [song for song in missed if song == FiledSong(path=song.path)]
        named = [song for song in missed if song != FiledSong(path=song.path)]
        if bare:
            found |= self._found_by_file_name(bare)
        if named:
            found |= self._found_by_name(named)
        return found

    def _found_by_name(self, songs: "list[FiledSong]") -> "dict[FiledSong, int | None]":
        from musicsim.library.importing.records import NamedSong

        matcher = self._matcher()
        found: dict[FiledSong, int | None] = {}
        for song in songs:
            artist, title = (song.artist, song.title) if song.artist and song.title else ("", "")
            match = matcher.find(NamedSong(artist, title, place=song.path))
            found[song] = match.song_id if match else None
        return found

    def _found_by_file_name(self, songs: "list[FiledSong]") -> "dict[FiledSong, int | None]":
        """The whole name has to agree, with that of one song only; it may be a number."""
        from musicsim.library.importing.places import PlaceIndex

        f = schema.files.c
        with self._engine.connect() as connection:
            paths = connection.execute(sa.select(f.path, f.song_id, f.missing_since).order_by(f.path)).all()
        places = PlaceIndex((path, song_id, gone is None) for path, song_id, gone in paths)
        endings = {song: places.by_end(song.path) for song in songs}
        return {song: ending.song_id if ending else None for song, ending in endings.items()}


# --- checks ---------------------------------------------------------------------------------------


def _row(
    created_at: float,
    listener: str,
    form: str,
    song_ids: Sequence[int],
    chosen: int | None,
    is_random: bool,
    foreseen: bool | None,
    model: str,
) -> dict[str, Any]:
    """An answer as the table has it.

    Raises
    ------
    ValueError
        If it makes no sense.
    """
    if form not in FORMS:
        raise ValueError(f"form={form!r} must be one of {', '.join(FORMS)}.")
    ids = [int(song_id) for song_id in song_ids]
    if not _FEWEST <= len(set(ids)) == len(ids) <= _MOST:
        raise ValueError(f"song_ids={tuple(ids)} must be {_FEWEST} or {_MOST} different songs.")
    first = 1 if form == "like" else 0
    if chosen is not None and not (isinstance(chosen, Integral) and first <= chosen < len(ids)):
        raise ValueError(
            f"chosen={chosen!r} must be a place from {first} to {len(ids) - 1}, or None for unsure."
        )
    if chosen is None and foreseen is not None:
        raise ValueError(f"foreseen={foreseen!r} must be None of an answer that is unsure.")
    return {
        "created_at": round(created_at, 6),  # as a file keeps it
        "listener": listener_name(listener),
        "form": form,
        **{song.name: song_id for song, song_id in zip(schema.ANSWER_SONGS, [*ids, None], strict=False)},
        "chosen": None if chosen is None else int(chosen),
        "is_random": bool(is_random),
        "foreseen": None if foreseen is None else bool(foreseen),
        "model": _storable("model", model),
    }


def _filed_row(
    answer: "FiledAnswer | str", found: "Mapping[FiledSong, int | None]"
) -> tuple[dict[str, Any], bool]:
    """An answer of a file as the table has it, and whether the file says when it was given.

    Raises
    ------
    ValueError
        If the file could not be read there, or the answer makes no sense, or a song of it was not found.
    """
    if isinstance(answer, str):
        raise ValueError(f"{answer}.")
    ids = []
    for song in answer.songs:
        song_id = found[song]
        if song_id is None:
            raise ValueError(f"{_called(song)} is not in this library.")
        ids.append(song_id)
    is_dated = answer.created_at is not None
    when = time.time() if answer.created_at is None else answer.created_at
    row = _row(
        when, answer.listener, answer.form, ids, answer.chosen, answer.is_random, answer.foreseen, answer.model
    )  # fmt: skip
    return row, is_dated


def listener_name(name: str) -> str:
    """A listener's name as it is kept: spaces are one each, and none stand around it.

    Raises
    ------
    ValueError
        If nothing is left of it, or UTF-8 cannot hold it.
    """
    kept = " ".join(_storable("listener", name).split())
    if not kept:
        raise ValueError("listener must not be empty: say who answers.")
    return kept


def _storable(argument: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{argument}={text!r} must be text that UTF-8 can hold.") from None
    return text


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


def _called(song: "FiledSong") -> str:
    return f"“{song.title}” by {song.artist or 'an unknown artist'}" if song.title else f"“{song.path}”"


def shortened(problems: list[str]) -> tuple[str, ...]:
    """The first 20 of what is wrong with the rows of a file, and how many more there are."""
    more = len(problems) - _MOST_PROBLEMS
    return (*problems[:_MOST_PROBLEMS], *([f"{more} more rows were left out."] if more > 0 else ()))
