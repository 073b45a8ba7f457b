"""Adding a folder of music, end to end, on both cores: speed, memory, and scanning again.

Speed: `Library.add` of files of three to four minutes, from the call to the last commit, including the start of
workers; the best of three runs. The files are generated songs joined and encoded; copies have another tag, so that
every file is decoded. Of twenty files ten are MP3, four FLAC, three M4A, one Ogg, one Opus and one WAV. The rival is a
typical script with librosa: `librosa.load`, `mfcc` and two `delta`s in a process pool, over one file per format and
piece.

Memory: the whole command `python -m musicsim add` on 300 and on 1,500 different songs of 25 s, including the fit of a
model at its end. It is the peak of all its processes together, with shared pages divided between them (PSS); RSS counts
those several times.

Scan again: the whole command `python -m musicsim scan` on 10,000 songs that have not changed.

The short form takes about ten minutes, the full form about twenty.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mutagen
import numpy as np
import soundfile

from benchmarks.extraction import demo_pieces, librosa_frames
from benchmarks.support.encoding import encode
from benchmarks.support.memory import family_memory
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main, version
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extras import install_command
from musicsim.library import Library
from musicsim.library.processes.workers import worker_context

_SR = 44100
_MIX = {".mp3": 10, ".flac": 4, ".m4a": 3, ".ogg": 1, ".opus": 1, ".wav": 1}
_MOST_OF_ERRORS = 2_000  # characters
_SAMPLE_S = 0.2
_RUNS = 3


# --- music ------------------------------------------------------------------------------------


def long_files(folder: Path, n_copies: int, seed: int) -> tuple[list[Path], float]:
    """Write long pieces in every format, `n_copies` times the mix, with different tags; return also the seconds."""
    folder.mkdir()
    pieces = demo_pieces(seed, n_pieces=2, songs_a_piece=8)
    wanted = [(folder / f"{name} {e[1:]}{e}", samples, _SR) for e in _MIX for name, samples in pieces.items()]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=worker_context("benchmarks.support.encoding")) as pool:
        firsts = list(pool.map(encode, *zip(*wanted, strict=True)))
    files, seconds = [], 0.0
    for first, (_, samples, _) in zip(firsts, wanted, strict=True):
        for n in range(n_copies * _MIX[first.suffix]):
            copy = folder / f"{first.stem} {n}{first.suffix}"
            copy.write_bytes(first.read_bytes())
            _tag(copy, f"copy {n}")
            files.append(copy)
            seconds += len(samples) / _SR
        first.unlink()
    return files, seconds


def _tag(path: Path, title: str) -> None:
    audio = mutagen.File(path, easy=True)
    if path.suffix == ".wav":
        audio = mutagen.File(path)
        audio.add_tags()
        audio.tags.add(mutagen.id3.TIT2(encoding=3, text=title))
    else:
        if audio.tags is None:
            audio.add_tags()
        audio["title"] = title
    audio.save()


def short_songs(folder: Path, n_songs: int, seed: int, seconds: float = 25.0) -> None:
    """Write different songs: two stretches of generated music mixed, other stretches and levels in each."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    music = np.concatenate(list(demo_pieces(seed, n_pieces=2, songs_a_piece=10).values()))
    n = int(seconds * _SR)

    def write(number: int, one: int, two: int, mix: float) -> None:
        song = mix * music[one : one + n] + (1 - mix) * music[two : two + n]
        soundfile.write(folder / f"{number:04d}.flac", song, _SR)

    drawn = (rng.integers(0, len(music) - n, (2, n_songs)), rng.uniform(0.2, 0.8, n_songs))
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the encoder releases the GIL
        list(pool.map(write, range(n_songs), *drawn[0], drawn[1]))


def tiny_songs(folder: Path, n_songs: int, seed: int, max_s: float = 0.2) -> list[Path]:
    """Write songs of a fifth of a second, or of a fifth to `max_s`, a hundred per folder."""
    rng = np.random.default_rng(seed)
    paths = [folder / f"{number // 100:03d}" / f"{number:05d}.wav" for number in range(n_songs)]
    for path, seconds in zip(paths, rng.uniform(0.2, max_s, n_songs), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, 0.1 * rng.standard_normal(round(seconds * 22050)), 22050)
    return paths


# --- measures ---------------------------------------------------------------------------------


def speed(folder: Path, n_copies: int, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure seconds of audio per wall second, ours and the rival's."""
    files, seconds = long_files(folder / "long", n_copies, seed)
    progress(f"{len(files)} files, {seconds / 3600:.1f} hours")
    runs = []
    for number in range(_RUNS):
        with Library.open(folder / f"library {number}") as library:
            start = time.perf_counter()
            report = library.add(folder / "long")
            runs.append(time.perf_counter() - start)
        progress(f"added in {runs[-1]:.1f} s")
        if report.n_added != len(files):
            raise RuntimeError(f"{len(files) - report.n_added} of {len(files)} files were not added")
    ours = min(runs)
    # librosa gets a subset of the files: it takes several times as long
    part = [path for path in files if path.stem.endswith(" 0") and path.suffix != ".m4a"]
    progress(f"librosa on {len(part)} of them")
    start = time.perf_counter()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=worker_context("benchmarks.extraction", "librosa")) as pool:
        frames = sum(pool.map(librosa_frames, part))
    theirs = frames * 256 / 22050 / (time.perf_counter() - start)
    rows = [
        {"what": "adding files of minutes", "who": "musicsim", "files": len(files), "wall_s": ours,
         "slowest_wall_s": max(runs), "audio_s_per_s": seconds / ours, "songs_an_hour": 3600 * len(files) / ours},
        {"what": "features alone, two processes", "who": "librosa", "files": len(part),
         "audio_s_per_s": theirs},
    ]  # fmt: skip
    claims = [
        at_least("seconds of audio a wall second, files of minutes", seconds / ours, 1400.0),
        at_least("times faster than librosa in as many processes", seconds / ours / theirs, 1.5),
    ]
    return rows, claims


def command(arguments: Sequence[str], progress: Progress) -> dict[str, Any]:
    """Run a musicsim command; return its wall time, its output, and the peak memory of its process tree."""
    import psutil

    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = psutil.Popen(
            [sys.executable, "-m", "musicsim", *arguments, "--json"], stdout=subprocess.PIPE, stderr=errors
        )
        peak = {"pss": 0, "rss": 0}
        while process.poll() is None:
            total = family_memory(process)
            peak = {kind: max(peak[kind], total[kind]) for kind in peak}
            time.sleep(_SAMPLE_S)
        seconds = time.perf_counter() - start
        said = process.stdout.read()
        if not said:
            errors.seek(0)
            words = errors.read().decode(errors="replace")[-_MOST_OF_ERRORS:]
            raise RuntimeError(f"musicsim {arguments[0]} ended with status {process.returncode}: {words}")
    told = json.loads(said)
    progress(f"{arguments[0]}: {seconds:.1f} s, {peak['pss'] / 1e6:.0f} MB")
    return {"wall_s": seconds, "peak_mb": peak["pss"] / 1e6, "peak_rss_mb": peak["rss"] / 1e6, "told": told}


def memory(folder: Path, sizes: tuple[int, int], seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure the peak memory for a small and a large folder."""
    rows: list[dict[str, Any]] = []
    for n_songs in sizes:
        progress(f"writing {n_songs} songs")
        short_songs(folder / f"songs {n_songs}", n_songs, seed)
        run = command(
            ["add", str(folder / f"songs {n_songs}"), "--library", str(folder / f"library {n_songs}")], progress
        )
        if run.pop("told")["songs"] != n_songs:
            raise RuntimeError(f"not all of {n_songs} songs were added")
        rows.append({"what": "musicsim add, with its model", "who": "musicsim", "files": n_songs, **run})
    small, large = (row["peak_mb"] for row in rows)
    claims = [
        at_most(f"peak memory, {sizes[1]} against {sizes[0]} files: share more", large / small - 1.0, 0.10),
        at_most(f"peak memory of all processes, {sizes[1]} files, MB", large, 1500.0),
    ]
    return rows, claims


def again(folder: Path, n_songs: int, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure a scan of a folder in which nothing has changed."""
    progress(f"writing and adding {n_songs} songs of 0.2 s")
    tiny_songs(folder / "tiny", n_songs, seed)
    library = folder / "tiny library"
    with Library.open(library) as opened:
        opened.set_setting("shortest_s", 0.0)
        opened.add(folder / "tiny")
        progress("fitting their model")
        refresh(opened)
    runs = [command(["scan", "--library", str(library)], progress) for _ in range(3)]
    if runs[-1]["told"]["unchanged"] != n_songs:
        raise RuntimeError("something was analyzed again")
    wall = min(run["wall_s"] for run in runs)
    rows = [{"what": "musicsim scan, nothing changed", "who": "musicsim", "files": n_songs, "wall_s": wall}]
    return rows, [at_most(f"scan again of {n_songs} unchanged files, seconds", wall, 5.0)]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    if not version("psutil"):
        raise SystemExit(f"psutil is missing: {install_command('bench')}")
    n_copies = 20 if settings.full else 4
    rows: list[Row] = []
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (
            speed(folder, n_copies, settings.seed, progress),
            memory(folder, (300, 1500), settings.seed, progress),
            again(folder, 10_000, settings.seed, progress),
        ):
            rows, claims = [*rows, *part[0]], [*claims, *part[1]]
    return rows, claims


if __name__ == "__main__":
    main(
        "ingest", "adding a folder of music", run, rivals=("librosa", "av", "psutil"),
        short="4 of 20 copies of the long files; the other parts are the same. This is final, because the rate of the "
        "full form differs by 4% on the same machine",
    )  # fmt: skip
