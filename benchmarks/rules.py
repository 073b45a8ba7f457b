"""CPU seconds to evaluate rules, at first and while a person types a value.

The drawn library has 100,000 songs, with ``--full`` a million: 90 s and 2.5 GB in the folder for temporary files. At
first, the columns that a rule needs are read: descriptors, dates, 0.3 plays per song, 0.1 ratings and one tag. The
table of songs is in memory, as it is in the open app. ``--library FOLDER`` selects a library that
:func:`enrich` filled.
"""

import tempfile
import time
from dataclasses import replace
from itertools import repeat
from pathlib import Path

import numpy as np

from benchmarks.large_library import write_library
from benchmarks.libraries import read_only
from benchmarks.support.columns import SIGNIFICANT_2, Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from musicsim.audio import DESCRIPTORS, KEYS, MODES
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.rules.finding import find_songs
from musicsim.extensions.rules.rule import Rule, RuleRequest
from musicsim.library import Library
from musicsim.library.db import schema

__all__ = ["enrich", "measure"]

_DAY_S = 86_400
_TAGS = ("calm", "party", "piano", "live", "acoustic", "summer", "sad", "guitar")
_RULES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("tempo:{0}..130 year:1970..1989 genre:=Jazz,Soul",), "random"),
    (("tempo:{0}.. energy:>15 loudness:<-10 mode:minor",), "tempo"),
    (("plays:3.. -played:{0}d genre:=Rock year:<2000",), "played"),
    (("rating:3.. added:{0}d tag:=calm,piano tempo:<110 year:>1980",), "added"),
    (("tag:=live or genre:=Folk", "plays:<{0} minutes:<5 tempo:>90 key:C,G,D year:>1965"), "plays"),
    (("similar:1%@{song} tempo:>{0} year:>1970 plays:0",), "similar"),
)
"""Conditions and orders; {0} is the value that a person is typing, and {song} is the id of a song."""
_TYPED = (105, 106, 107, 108, 109)
_SONGS, _FULL_SONGS = 100_000, 1_000_000
_MAX_FIRST_S, _MAX_TYPED_S = 0.3, 0.1  # for a million songs


def enrich(library: Library, random_state: int = 0) -> None:
    """Draw descriptors and dates of all songs, plays of 30%, ratings of 10%, and one tag per song on average."""
    rng, now = np.random.default_rng(random_state), time.time()
    with library.write() as connection:
        ids = np.array(connection.scalars(schema.songs.select().with_only_columns(schema.songs.c.id)).all())
        n = len(ids)
        # a sixth of the values is beyond each end of the scale
        heard = np.column_stack(
            [
                rng.normal(np.mean(descriptor.ends), np.ptp(descriptor.ends) / 2, n)
                for descriptor in DESCRIPTORS.values()
            ]
        ).round(2)
        names = [[*KEYS][k] for k in rng.integers(len(KEYS), size=n)], [MODES[m] for m in rng.integers(2, size=n)]
        added = now - rng.random(n) * 1000 * _DAY_S
        sets = ", ".join(f"{column} = ?" for column in (*DESCRIPTORS, "key", "mode", "added_at"))
        rows = zip(heard.tolist(), *names, added.tolist(), ids.tolist(), strict=True)
        connection.exec_driver_sql(
            f"UPDATE songs SET {sets} WHERE id = ?", [(*values, *others) for values, *others in rows]
        )
        played = rng.choice(ids, int(0.3 * n), replace=False).tolist()
        counts = rng.geometric(0.2, size=len(played)).tolist()
        rated = rng.choice(ids, n // 10, replace=False).tolist()
        stars = [f"rated {r}" for r in rng.integers(1, 6, size=len(rated))]
        tagged = zip(rng.choice(ids, n).tolist(), [_TAGS[t] for t in rng.integers(len(_TAGS), size=n)], strict=True)
        plays = zip(repeat("me"), played, repeat("drawn"), counts)
        connection.exec_driver_sql("INSERT OR REPLACE INTO plays VALUES (?, ?, ?, ?)", list(plays))
        tags = [(i, tag, "drawn", 1.0) for i, tag in (*zip(rated, stars, strict=True), *tagged)]
        connection.exec_driver_sql("INSERT OR REPLACE INTO tags VALUES (?, ?, ?, ?)", tags)
        times = (now - rng.random(len(played)) * 700 * _DAY_S).tolist()
        listens = [(at, "", "play", i, "{}") for at, i in zip(times, played, strict=True)]
        statement = "INSERT INTO judgments (created_at, listener, kind, song_1, context) VALUES (?, ?, ?, ?, ?)"
        connection.exec_driver_sql(statement, listens)


def measure(library: Library) -> list[dict[str, float | str]]:
    """Time each rule: first when its columns are read, then for values that a person types, as the maximum of all.

    Returns
    -------
    list of dict
        One per rule: its text, the number of songs that meet it, and wall and CPU seconds for both cases.
    """
    rows: list[dict[str, float | str]] = []
    for number, (where, order) in enumerate(_RULES):
        snapshot = replace(take_snapshot(library), revision=-number)  # has read no columns for another rule
        rules = [_rule(snapshot, where, order, typed) for typed in (*_TYPED, *_TYPED[::-1])]
        timed = [_time(snapshot, rule) for rule in rules]
        (n, first, first_cpu), *others = timed
        typed, typed_cpu = (max(values) for values in list(zip(*others, strict=True))[1:])
        at_first = {"first s": first, "first CPU s": first_cpu}
        rows.append({"what": str(rules[0]), "songs": n, **at_first, "typed s": typed, "typed CPU s": typed_cpu})
    return rows


def _rule(snapshot: Snapshot, where: tuple[str, ...], order: str, typed: int) -> Rule:
    song_id = int(snapshot.row_ids[snapshot.n_indexed // 2])
    return RuleRequest(where=tuple(one.format(typed, song=song_id) for one in where), order=order).rule()


def _time(snapshot: Snapshot, rule: Rule) -> tuple[int, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = find_songs(snapshot, rule)
    snapshot.songs_at(found.rows[:20])
    return found.n_matching, time.perf_counter() - wall, time.process_time() - cpu


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    with tempfile.TemporaryDirectory() as name:
        folder = settings.library or _draw(Path(name) / "library", settings, progress)
        with read_only(folder) as library:
            progress("evaluating rules")
            rows = measure(library)
            settings.facts["songs"] = n = len(library.table().ids)
    claims = [
        at_most(f"first evaluation of a rule over {n:,} songs, CPU s", _worst(rows, "first CPU s"), _MAX_FIRST_S),
        at_most("evaluation while a value is typed, CPU s", _worst(rows, "typed CPU s"), _MAX_TYPED_S),
    ]
    return list(rows), claims


def _draw(folder: Path, settings: Settings, progress: Progress) -> Path:
    n_songs = _FULL_SONGS if settings.full else _SONGS
    progress(f"drawing {n_songs:,} songs")
    with write_library(folder, n_songs, random_state=settings.seed) as library:
        enrich(library, settings.seed)
    return folder


def _worst(rows: list[dict[str, float | str]], column: str) -> float:
    return max(float(row[column]) for row in rows)


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "rules": list_columns(
        Column("conditions", "what", "`{}`"),
        Column("songs", "songs", SIGNIFICANT_2),
        Column("first evaluation, CPU s", "first CPU s", SIGNIFICANT_2),
        Column("while a value is typed, CPU s", "typed CPU s", SIGNIFICANT_2),
    )
}


if __name__ == "__main__":
    main(
        "rules", "rules over a large library", run, takes_library=True,
        short="100,000 of 1,000,000 songs",
    )  # fmt: skip
