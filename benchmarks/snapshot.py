"""Snapshot files: seconds for writing, unpacking and opening one, its size, and the memory needed.

Each step runs once, in a separate process: writing, unpacking, and then a second process that finds the file unpacked
and returns the results of its first search. Memory is the peak of resident memory, including pages of mapped files.

Short: a library of 20,000 drawn songs. ``--full``: a library of a million. ``--library FOLDER``: that library, which is
only read.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.large_library import write_library
from benchmarks.libraries import read_only
from benchmarks.support.memory import alone
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.bundles.bundle import ENDING, open_bundle, write_bundle
from musicsim.library import Library
from musicsim.progress import no_progress

_N_SONGS, _N_SONGS_FULL = 20_000, 1_000_000
_MAX_S, _MAX_MB = 300.0, 2000.0


def _written(library: Path, file: Path) -> dict[str, Any]:
    with read_only(library) as of:
        n_songs, _ = write_bundle(of, file, no_progress)
    return {"n_songs": n_songs, "file_mb": file.stat().st_size / 1e6}


def _opened(file: Path) -> dict[str, Any]:
    with open_bundle(file, no_progress) as folder:
        unpacked_mb = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        os.environ["MUSICSIM_PUBLIC"] = "1"
        with Library.open(folder) as library:
            now = take_snapshot(library)
            found = len(find_similar(now, int(now.row_ids[0])))
    return {"unpacked_mb": unpacked_mb, "found": found}


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    with tempfile.TemporaryDirectory(prefix="musicsim-snapshot-") as scratch:
        os.environ["XDG_CACHE_HOME"] = f"{scratch}/cache"
        folder = settings.library
        if folder is None:
            folder = Path(scratch) / "library"
            progress("drawing a library")
            write_library(folder, _N_SONGS_FULL if settings.full else _N_SONGS).close()
        file = Path(scratch) / f"music{ENDING}"
        rows: list[Row] = []
        for what, function, *arguments in (
            ("write", _written, folder, file),
            ("unpack, check, first search", _opened, file),
            ("a second process, first search", _opened, file),
        ):
            rows.append({"what": what, **alone(function, *arguments)})
            progress(f"{what}: {rows[-1]['s']:.1f} s, {rows[-1]['mb']:.0f} MB")
    settings.facts["songs"] = rows[0]["n_songs"]
    claims = [
        at_most("written and read, s", rows[0]["s"] + rows[1]["s"], _MAX_S),
        at_most("memory at most, MB", max(row["mb"] for row in rows), _MAX_MB),
        at_most("a second process, s", rows[2]["s"], 5.0),
    ]
    return rows, claims


if __name__ == "__main__":
    main(
        "snapshot", __doc__.splitlines()[0], run, takes_library=True, rivals=("zstandard",),
        short="20,000 of 1,000,000 songs",
    )  # fmt: skip
