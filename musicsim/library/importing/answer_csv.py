"""Answers of listeners as CSV: one a line, its songs named so that the library of another machine finds them.

Our own form has these columns, in any order; the fourth song's may be empty or missing::

    answered_at, listener, form, chosen, is_random, foreseen, model,
    song1_hash, song1_artist, song1_title, song1_path, song2_hash, ...

`chosen` is the name of a song's columns ("song2") or "unsure"; `answered_at` is a time as ISO 8601 has it; what is yes
or no is written so, and empty where it is not known. Of a path the last three parts are written: they are enough to
find a song by, and say nothing of whose computer it is.

Of the odd-one-out survey of bliss, ``song1,song2,song3,picked_song`` are read, names of files each, and where they are
there `person_id` and `updated_date`.

Cells that a spreadsheet would take for formulas are written and read as :mod:`musicsim.library.disk.csv_cells` says.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import BinaryIO

from musicsim.errors import LibraryError
from musicsim.library.disk.csv_cells import as_csv, restored
from musicsim.library.importing.places import spelled_out
from musicsim.library.importing.reading import ME

_MAX_SONGS = 4
_OF_ANSWER = ("answered_at", "listener", "form", "chosen", "is_random", "foreseen", "model")
_OF_SONG = ("hash", "artist", "title", "path")
ANSWER_COLUMNS = (*_OF_ANSWER, *(f"song{n}_{name}" for n in range(1, _MAX_SONGS + 1) for name in _OF_SONG))
"""Columns of a file of answers, of our own form."""
_NEEDED = ("listener", "form", "chosen", *(f"song{n}_{name}" for n in (1, 2, 3) for name in _OF_SONG))
_BLISS = ("song1", "song2", "song3", "picked_song")
_UNSURE = "unsure"
_YES_NO = {True: "yes", False: "no", None: ""}
_FROM_YES_NO = {text: value for value, text in _YES_NO.items()}
_N_PARTS = 3


@dataclass(frozen=True, slots=True)
class FiledSong:
    """A song as a file of answers names it; what it does not say is empty."""

    content_hash: str = ""
    artist: str = ""
    title: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class FiledAnswer:
    """An answer as it stands in a file; see :class:`musicsim.library.stores.judgments.Judgment`."""

    created_at: float | None  # None where the file does not say when
    listener: str
    form: str
    songs: tuple[FiledSong, ...]
    chosen: int | None
    is_random: bool = False
    foreseen: bool | None = None
    model: str = ""


def write_answers(file: BinaryIO, answers: Iterable[FiledAnswer]) -> None:
    """Write answers in our own form, UTF-8."""
    file.write(as_csv(ANSWER_COLUMNS, map(answer_cells, answers)))


def answer_cells(answer: FiledAnswer) -> list[str]:
    """An answer as a row of a table with :data:`ANSWER_COLUMNS`."""
    when = "" if answer.created_at is None else datetime.fromtimestamp(answer.created_at, UTC).isoformat()
    chosen = _UNSURE if answer.chosen is None else f"song{answer.chosen + 1}"
    is_random, foreseen = _YES_NO[answer.is_random], _YES_NO[answer.foreseen]
    cells = [when, answer.listener, answer.form, chosen, is_random, foreseen, answer.model]
    for song in answer.songs:
        way = "/".join(PurePath(song.path).parts[-_N_PARTS:])
        cells += [song.content_hash, song.artist, song.title, spelled_out(way)]
    return cells + [""] * (len(ANSWER_COLUMNS) - len(cells))


def read_answers(file: BinaryIO, label: str) -> Iterator[tuple[int, FiledAnswer | str]]:
    """Each answer of a file with the number of its line, or what is wrong with it.

    Raises LibraryError, which names `label`, if the file is no CSV in UTF-8, or lacks columns.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    rows = csv.reader(text, strict=True)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        answer_of = _reader(header, label)
        line = rows.line_num + 1
        for cells in rows:
            if cells and len(cells) != len(header):
                yield line, f"has {len(cells)} values, the header {len(header)}"
            elif cells:
                try:
                    answer: FiledAnswer | str = answer_of(dict(zip(header, cells, strict=True)))
                except ValueError as error:
                    answer = str(error)
                yield line, answer
            line = rows.line_num + 1
    except UnicodeDecodeError as error:
        raise LibraryError(f"{label}: the file is not UTF-8. Save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise LibraryError(f"{label}: line {rows.line_num} is not CSV ({error}). Export it again.") from error
    finally:
        text.detach()


def _reader(header: Sequence[str], label: str) -> Callable[[dict[str, str]], FiledAnswer]:
    for needed, read in ((_NEEDED, _ours), (_BLISS, _bliss)):
        if set(needed) <= set(header):
            return read
    named = f"lacks {', '.join(n for n in _NEEDED if n not in header)}" if "form" in header else "is of another kind"
    raise LibraryError(f"{label}: the file {named}. Answers have the columns of an export, or {', '.join(_BLISS)}.")


def _ours(cells: dict[str, str]) -> FiledAnswer:
    cells = {name: restored(cell) for name, cell in cells.items()}
    songs = [FiledSong(*(cells.get(f"song{n}_{name}", "") for name in _OF_SONG)) for n in range(1, _MAX_SONGS + 1)]
    if songs[-1] == FiledSong():
        songs.pop()
    chosen = cells["chosen"].strip().lower()
    places = {_UNSURE: None, **{f"song{place + 1}": place for place in range(len(songs))}}
    if chosen not in places:
        raise ValueError(f"chosen is {chosen[:40]!r}; it should be one of {', '.join(places)}")
    is_random, foreseen = (_yes_no(name, cells.get(name, "")) for name in ("is_random", "foreseen"))
    when, form = _seconds(cells.get("answered_at", "")), cells["form"].strip().lower()
    judged = (places[chosen], bool(is_random), foreseen, cells.get("model", ""))
    return FiledAnswer(when, cells["listener"], form, tuple(songs), *judged)


def _bliss(cells: dict[str, str]) -> FiledAnswer:
    names = [cells[name] for name in _BLISS[:3]]
    picked = cells["picked_song"]
    if picked and picked not in names:
        raise ValueError(f"picked_song is {picked[:80]!r}, which is none of the three")
    listener = cells.get("listener", "").strip() or cells.get("person_id", "").strip()
    songs = tuple(FiledSong(path=name) for name in names)
    when = _seconds(cells.get("updated_date", ""))
    return FiledAnswer(when, listener or ME, "odd", songs, names.index(picked) if picked else None)


def _yes_no(name: str, text: str) -> bool | None:
    plain = text.strip().lower()
    if plain not in _FROM_YES_NO:
        raise ValueError(f"{name} is {text[:40]!r}; it should be yes, no or empty")
    return _FROM_YES_NO[plain]


def _seconds(text: str) -> float | None:
    """Seconds since 1970; a time without a zone is taken as UTC."""
    if not text.strip():
        return None
    try:
        when = datetime.fromisoformat(text.strip())
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        datetime.fromtimestamp(seconds, UTC)  # as it is written: a zone may lead out of the years that there are
    except (ValueError, OverflowError, OSError):
        seconds = math.nan
    if math.isnan(seconds):
        raise ValueError(f"the time is {text[:40]!r}; it should look like 2026-01-31T10:11:12+00:00")
    return seconds
