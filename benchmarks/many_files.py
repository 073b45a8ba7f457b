"""A million files on disk, without a browser: adding them, and scanning again when nothing has changed.

Different sounds of .2 to .7 s are written and added once, 5,000 or (``--full``) 50,000; twenty times as many files are
hard links to them. `musicsim add` finds, plans and reads each of them, recognizes its sound by the hash of its bytes,
and enters it as another file of that song. After each size, the whole command `musicsim scan` runs with nothing
changed. The additional cost of a new sound, decoding and frames, is measured in `benchmarks.ingest`.

The short form ends with 100,000 files; ``--full`` goes to a million, which takes most of an hour.
"""

import os
import tempfile
from pathlib import Path

from benchmarks.ingest import command, tiny_songs
from benchmarks.support.columns import SIGNIFICANT_2, Column, Table, list_columns
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, version
from musicsim import LIBRARY_FILE
from musicsim.extras import install_command

_A_FOLDER = 1_000
_LINKS = 20  # per sound
_GOAL_RESCAN_S = 240.0
_LINEAR = 1.25  # maximum ratio of the cost per file at the largest size to that at the size before


def link(sounds: list[Path], folder: Path, first: int, last: int) -> None:
    """Make hard links number `first` to `last`, a thousand per folder."""
    for number in range(first, last):
        place = folder / f"{number // _A_FOLDER:04d}"
        if number % _A_FOLDER == 0 or number == first:
            place.mkdir(parents=True, exist_ok=True)
        os.link(sounds[number % len(sounds)], place / f"{number:07d}.wav")


def _size_mb(library: Path) -> float:
    return sum(path.stat().st_size for path in library.glob(f"{LIBRARY_FILE}*")) / 1e6


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    if not version("psutil"):
        raise SystemExit(f"psutil is missing: {install_command('bench')}")
    sizes = (10_000, 100_000, 1_000_000) if settings.full else (10_000, 30_000, 100_000)
    n_sounds = sizes[-1] // _LINKS
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder, library = Path(name), Path(name) / "library"
        progress(f"writing and adding {n_sounds} sounds")
        sounds = tiny_songs(folder / "sounds", n_sounds, settings.seed, max_s=0.7)
        command(["add", str(folder / "sounds"), "--shortest", "0", "--library", str(library)], progress)
        n_before, mb_before = 0, _size_mb(library)
        for n_files in sizes:
            link(sounds, folder / "links", n_before, n_files)
            n_new = n_files - n_before
            progress(f"{n_new} more files")
            added = command(["add", str(folder / "links"), "--library", str(library)], progress)
            said = added.pop("told")
            if said["known"] != n_new or said["failed"]:
                raise RuntimeError(f"not all of {n_new} files were entered: {said}")
            again = command(["scan", "--library", str(library)], progress)
            if again.pop("told")["unchanged"] != n_files + n_sounds:
                raise RuntimeError("something was read again")
            mb = _size_mb(library)
            rows.append(
                {"files": n_files, "add_s": added["wall_s"], "files_per_s": n_new / added["wall_s"],
                 "add_peak_mb": added["peak_mb"], "database_mb": mb,
                 "bytes_a_file": 1e6 * (mb - mb_before) / n_new,
                 "scan_s": again["wall_s"], "scan_us_a_file": 1e6 * again["wall_s"] / n_files,
                 "scan_peak_mb": again["peak_mb"]}
            )  # fmt: skip
            n_before, mb_before = n_files, mb
    smaller, largest = rows[-2], rows[-1]
    kb = 1e3 * (largest["add_peak_mb"] - smaller["add_peak_mb"]) / (largest["files"] - smaller["files"])
    claims = [
        at_most(f"scan of {largest['files']:,} unchanged files, s", largest["scan_s"], _GOAL_RESCAN_S),
        at_most(
            "of that a file, times the smaller folder's", largest["scan_us_a_file"] / smaller["scan_us_a_file"], _LINEAR
        ),
        at_least(
            "files added a second, times the smaller folder's",
            largest["files_per_s"] / smaller["files_per_s"],
            1 / _LINEAR,
        ),
        at_most(
            "bytes of database a file, times the smaller folder's",
            largest["bytes_a_file"] / smaller["bytes_a_file"],
            _LINEAR,
        ),
        at_most("memory of adding, kB a file", kb, 3.0),
    ]
    return rows, claims


# --- tables of the documents --------------------------------------------------------------------------------


TABLES: dict[str, Table] = {
    "many_files": list_columns(
        *(
            Column(heading, column, SIGNIFICANT_2)
            for heading, column in {
                "files": "files", "adding, s": "add_s", "files per s": "files_per_s",
                "memory of adding, MB": "add_peak_mb", "scanning again, s": "scan_s",
                "memory of scanning, MB": "scan_peak_mb",
            }.items()
        )
    ),
}  # fmt: skip


if __name__ == "__main__":
    main(
        "many_files", "adding and scanning a million files", run, rivals=("psutil",),
        short="up to 100,000 instead of 1,000,000 files",
    )  # fmt: skip
