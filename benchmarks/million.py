"""Response times of the service for a library of a million songs.

``python -m benchmarks.million FOLDER --songs 1000000`` writes one; ``--measure``, in a separate process, measures it.
"""

import argparse
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.large_library import write_library
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library

__all__ = ["measure"]

T = TypeVar("T")


def measure(folder: Path) -> list[dict[str, float | str]]:
    """Time the operations of the service on a library, starting with opening it; each step once, in this process.

    Returns
    -------
    list of dict
        One per step: its name, wall seconds, CPU seconds, and the memory of the process after it in MB.
    """
    import psutil

    process, rows = psutil.Process(), []

    def step(what: str, do: Callable[[], T]) -> T:
        wall, cpu = time.perf_counter(), time.process_time()
        result = do()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows.append({"what": what, "s": wall, "CPU s": cpu, "MB": process.memory_info().rss / 1e6})
        return result

    step("import", lambda: import_module("musicsim.explorer.snapshot.model_rows"))
    library = step("open", lambda: Library.open(folder))
    now = step("take a snapshot", lambda: take_snapshot(library))
    step("songs as columns", lambda: now.n_songs)
    step("rows", lambda: now.n_indexed)
    step("map, clusters", lambda: (now.map, now.clusters))
    step("index", lambda: now.index)
    ids = now.row_ids[np.random.default_rng(0).integers(now.n_indexed, size=8)].tolist()
    step("similar songs, first", lambda: find_similar(now, ids[0]))
    for song_id in ids[1:4]:
        step("similar songs", lambda song_id=song_id: find_similar(now, song_id))
    step("without hub reduction", lambda: find_similar(now, ids[4], hub_reduction=False))
    years, genres = Filters(years=(1970, 1979)), Filters(genres=frozenset({"Jazz"}))
    artist = Filters(artists=frozenset(a for a, _ in now.find("the").artists[:1]))
    for what, filters in (("ten years", years), ("a genre", genres), ("an artist", artist)):
        step(f"of {what}", lambda filters=filters: find_similar(now, ids[5], filters=filters))
    for text in ("a", "the old mill", now.names_at([7])[0][1], "in no name"):
        step(f"find {text!r}", lambda text=text: now.find(text))
    some = np.random.default_rng(0).choice(now.n_indexed, min(8_000, now.n_indexed), replace=False)
    step("names of 8,000 songs", lambda: now.names_at(some))
    step("counts", library.counts)
    before = library.songs(ids[6:7])[0]
    for change, do in (
        ("a thumb", lambda: library.set_feedback(before.id, 0)),
        ("a playlist", lambda: library.saved_playlists.delete(0)),
        ("a new title", lambda: library.edits.edit([before.id], {"title": f"{before.title} again"})),
        ("the old title", lambda: library.edits.undo([before.id])),
    ):
        step(f"write {change}", do)
        now = take_snapshot(library)
        step(f"similar songs after {change}", lambda now=now: find_similar(now, ids[7]))
        step(f"find after {change}", lambda now=now: now.find("the old mill"))
    library.close()
    return rows


def _main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.million", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--songs", type=int, default=1_000_000)
    parser.add_argument("--measure", action="store_true", help="measure a library that is there")
    given = parser.parse_args()
    if given.measure:
        for row in measure(given.folder):
            print(f"{row['what']:45}{row['s']:10.4f} s {row['CPU s']:10.4f} CPU s {row['MB']:8.0f} MB")
        return
    started = time.perf_counter()
    write_library(given.folder, given.songs).close()
    print(f"written in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    _main()
