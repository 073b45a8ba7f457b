"""Listeners' answers as CSV, with song names that a library on another machine can match.

The columns, in any order, are `answered_at` (ISO 8601), `listener`, `form`, `chosen` ("song1" to "song4" or "unsure"),
`is_random`, `foreseen`, `model`, and for each song `song1_hash`, `song1_artist`, `song1_title` and `song1_path`. Paths
are cut to their last three parts, to hide the name of the computer's owner. Files of bliss's odd-one-out survey can
also be read.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import BinaryIO

from musicsim.errors import LibraryError
from musicsim.library.disk.csv_cells import restore_cell
from musicsim.library.importing.places import spell_out
from musicsim.library.importing.reading import ME

_MAX_SONGS = 4
_OF_ANSWER = ("answered_at", "listener", "form", "chosen", "is_random", "foreseen", "model")
_OF_SONG = ("hash", "artist", "title", "path")
ANSWER_COLUMNS = (*_OF_ANSWER, *(f"song{n}_{name}" for n in range(1, _MAX_SONGS + 1) for name in _OF_SONG))
"""Columns of musicsim's own format."""
_NEEDED = ("listener", "form", "chosen", *(f"song{n}_{name}" for n in (1, 2, 3) for name in _OF_SONG))
_BLISS = ("song1", "song2", "song3", "picked_song")
_UNSURE = "unsure"
_YES_NO = {True: "yes", False: "no", None: ""}
_FROM_YES_NO = {text: value for value, text in _YES_NO.items()}
_N_PARTS = 3


@dataclass(frozen=True, slots=True)
class FiledSong:
    """A song in a file of answers; unknown values are empty."""

    content_hash: str = ""
    artist: str = ""
    title: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class FiledAnswer:
    """An answer in a file; see :class:`musicsim.library.stores.judgments.Judgment`."""

    created_at: float | None  # None if not in the file
    listener: str
    form: str
    songs: tuple[FiledSong, ...]
    chosen: int | None
    is_random: bool = False
    foreseen: bool | None = None
    model: str = ""


def answer_cells(answer: FiledAnswer) -> list[str]:
    """Return an answer as a row with :data:`ANSWER_COLUMNS`."""
    time = "" if answer.created_at is None else datetime.fromtimestamp(answer.created_at, UTC).isoformat()
    chosen = _UNSURE if answer.chosen is None else f"song{answer.chosen + 1}"
    is_random, foreseen = _YES_NO[answer.is_random], _YES_NO[answer.foreseen]
    cells = [time, answer.listener, answer.form, chosen, is_random, foreseen, answer.model]
    for song in answer.songs:
        path_end = "/".join(PurePath(song.path).parts[-_N_PARTS:])
        cells += [song.content_hash, song.artist, song.title, spell_out(path_end)]
    return cells + [""] * (len(ANSWER_COLUMNS) - len(cells))


def read_answers(file: BinaryIO, label: str) -> Iterator[tuple[int, FiledAnswer | str]]:
    """Yield each answer's line number, with the answer or its problem; error messages begin with `label`."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    rows = csv.reader(text, strict=True)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        parse = _select_parser(header, label)
        line = rows.line_num + 1
        for cells in rows:
            if cells and len(cells) != len(header):
                yield line, f"has {len(cells)} values, but the header has {len(header)}"
            elif cells:
                try:
                    answer: FiledAnswer | str = parse(dict(zip(header, cells, strict=True)))
                except ValueError as error:
                    answer = str(error)
                yield line, answer
            line = rows.line_num + 1
    except UnicodeDecodeError as error:
        raise LibraryError(f"{label}: the file is not UTF-8. Save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise LibraryError(f"{label}: line {rows.line_num} is not CSV ({error}). Export the file again.") from error
    finally:
        text.detach()


def _select_parser(header: Sequence[str], label: str) -> Callable[[dict[str, str]], FiledAnswer]:
    for needed, parse in ((_NEEDED, _parse_own), (_BLISS, _parse_bliss)):
        if set(needed) <= set(header):
            return parse
    missing = ", ".join(n for n in _NEEDED if n not in header)
    problem = f"lacks {missing}" if "form" in header else "does not contain answers"
    raise LibraryError(f"{label}: the file {problem}. It needs the columns of an export, or {', '.join(_BLISS)}.")


def _parse_own(cells: dict[str, str]) -> FiledAnswer:
    cells = {name: restore_cell(cell) for name, cell in cells.items()}
    songs = [FiledSong(*(cells.get(f"song{n}_{name}", "") for name in _OF_SONG)) for n in range(1, _MAX_SONGS + 1)]
    if songs[-1] == FiledSong():
        songs.pop()
    chosen = cells["chosen"].strip().lower()
    choices = {_UNSURE: None, **{f"song{i + 1}": i for i in range(len(songs))}}
    if chosen not in choices:
        raise ValueError(f"chosen is {chosen[:40]!r}; it must be one of {', '.join(choices)}")
    is_random, foreseen = (_parse_yes_no(name, cells.get(name, "")) for name in ("is_random", "foreseen"))
    return FiledAnswer(
        _parse_time(cells.get("answered_at", "")), cells["listener"], cells["form"].strip().lower(), tuple(songs),
        choices[chosen], bool(is_random), foreseen, cells.get("model", ""),
    )  # fmt: skip


def _parse_bliss(cells: dict[str, str]) -> FiledAnswer:
    names = [cells[name] for name in _BLISS[:3]]
    picked = cells["picked_song"]
    if picked and picked not in names:
        raise ValueError(f"picked_song is {picked[:80]!r}, which is not one of the three songs")
    listener = cells.get("listener", "").strip() or cells.get("person_id", "").strip()
    songs = tuple(FiledSong(path=name) for name in names)
    time = _parse_time(cells.get("updated_date", ""))
    return FiledAnswer(time, listener or ME, "odd", songs, names.index(picked) if picked else None)


def _parse_yes_no(name: str, text: str) -> bool | None:
    plain = text.strip().lower()
    if plain not in _FROM_YES_NO:
        raise ValueError(f"{name} is {text[:40]!r}; it must be yes, no or empty")
    return _FROM_YES_NO[plain]


def _parse_time(text: str) -> float | None:
    """Return seconds since 1970; a time without a zone is UTC."""
    if not text.strip():
        return None
    try:
        time = datetime.fromisoformat(text.strip())
        seconds = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
        datetime.fromtimestamp(seconds, UTC)  # must be in range for exports; a time zone can move it to the year 10000
    except (ValueError, OverflowError, OSError):
        seconds = math.nan
    if math.isnan(seconds):
        raise ValueError(f"the time is {text[:40]!r}; it must look like 2026-01-31T10:11:12+00:00")
    return seconds
