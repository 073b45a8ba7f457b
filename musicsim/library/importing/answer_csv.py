"""Listeners' answers as CSV, with song names that a library on another machine can match.

The columns, in any order, are `answered_at` (ISO 8601), `listener`, `form`, `chosen` ("song1" to "song4" or "unsure"),
`is_random`, `foreseen`, `model`, and for each song `song1_hash`, `song1_artist`, `song1_title` and `song1_path`. Paths
are cut to their last three parts, to hide the name of the computer's owner. Files of bliss's odd-one-out survey can
also be read, and two public data sets with the votes of many listeners:

- MagnaTagATune (comparisons_final.csv, separated by tabs): three clips, and the votes for each as the odd one out.
- dim-sim (clean-dim-sim.csv): an anchor, two songs, and the votes for each song as the one more like the anchor.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, repeat
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
_MAGNATAGATUNE = tuple(f"clip{n}_{name}" for n in (1, 2, 3) for name in ("id", "numvotes", "mp3_path"))
_DIM_SIM = (*(f"{clip}_{name}" for clip in ("anchor", "song1", "song2") for name in ("id", "start_seconds")),
            "song1_vote", "song2_vote")  # fmt: skip
_MAX_VOTES = 10_000
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


@dataclass(frozen=True, slots=True)
class FiledVotes:
    """A question in a public data set, with the number of listeners who chose each song."""

    data_set: str
    form: str
    clips: tuple[str, ...]  # names in the data set; for "like", the reference clip comes first
    songs: tuple[FiledSong, ...]
    votes: tuple[int, ...]  # number of votes for each song; 0 for a reference

    @property
    def has_majority(self) -> bool:
        """True if one song has more votes than each other song."""
        return self.votes.count(max(self.votes)) == 1

    def answers(self) -> Iterator[FiledAnswer]:
        """Yield one answer per vote; the listener's name is that of the data set."""
        for chosen, n_votes in enumerate(self.votes):
            yield from repeat(FiledAnswer(None, self.data_set, self.form, self.songs, chosen), n_votes)


Filed = FiledAnswer | FiledVotes


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


def read_answers(file: BinaryIO, label: str) -> Iterator[tuple[int, Filed | str]]:
    """Yield each row's line number, with its answer, votes or problem; error messages begin with `label`."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        first = text.readline()
        delimiter = "\t" if first.count("\t") > first.count(",") else ","
        rows = csv.reader(chain([first], text), delimiter=delimiter, strict=True)
        header = [name.strip().lower() for name in next(rows, [])]
        parse = _select_parser(header, label)
        line = rows.line_num + 1
        for cells in rows:
            if cells and len(cells) != len(header):
                yield line, f"has {len(cells)} values, but the header has {len(header)}"
            elif cells:
                try:
                    answer: Filed | str = parse(dict(zip(header, cells, strict=True)))
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


def _select_parser(header: Sequence[str], label: str) -> Callable[[dict[str, str]], Filed]:
    parsers: tuple[tuple[Sequence[str], Callable[[dict[str, str]], Filed]], ...] = (
        (_NEEDED, _parse_own), (_BLISS, _parse_bliss), (_MAGNATAGATUNE, _parse_magnatagatune),
        (_DIM_SIM, _parse_dim_sim),
    )  # fmt: skip
    for needed, parse in parsers:
        if set(needed) <= set(header):
            return parse
    missing = ", ".join(n for n in _NEEDED if n not in header)
    problem = f"lacks {missing}" if "form" in header else "does not contain answers"
    raise LibraryError(
        f"{label}: the file {problem}. It needs the columns of an export, {', '.join(_BLISS)}, "
        "or those of MagnaTagATune's comparisons or dim-sim."
    )


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


def _parse_magnatagatune(cells: dict[str, str]) -> FiledVotes:
    clips, votes, paths = (
        [cells[f"clip{n}_{name}"].strip() for n in (1, 2, 3)] for name in ("id", "numvotes", "mp3_path")
    )
    return _join_votes("MagnaTagATune", "odd", clips, paths, [_parse_votes(text) for text in votes])


def _parse_dim_sim(cells: dict[str, str]) -> FiledVotes:
    ids, starts = (
        [cells[f"{clip}_{name}"].strip() for clip in ("anchor", "song1", "song2")] for name in ("id", "start_seconds")
    )
    clips = [f"{track}@{_parse_start(start):g}" if track else "" for track, start in zip(ids, starts, strict=True)]
    votes = [0, *(_parse_votes(cells[f"song{n}_vote"]) for n in (1, 2))]
    return _join_votes("dim-sim", "like", clips, [f"{track}.mp3" for track in ids], votes)


def _join_votes(data_set: str, form: str, clips: list[str], paths: list[str], votes: list[int]) -> FiledVotes:
    if not all(clips) or not all(paths) or len(set(clips)) < len(clips):
        raise ValueError(f"the clips are {', '.join(repr(clip[:40]) for clip in clips)}; give three different clips")
    return FiledVotes(data_set, form, tuple(clips), tuple(FiledSong(path=path) for path in paths), tuple(votes))


def _parse_votes(text: str) -> int:
    n_votes = int(text) if text.strip().isdecimal() else _MAX_VOTES + 1
    if n_votes > _MAX_VOTES:
        raise ValueError(f"the number of votes is {text[:40]!r}; it must be a whole number from 0 to {_MAX_VOTES:,}")
    return n_votes


def _parse_start(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"the start of a clip is {text[:40]!r}; it must be a number of seconds")
    return seconds


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
