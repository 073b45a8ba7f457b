"""Seconds from the click on *Train* to the active model, on the demo and on 5,000 and 20,000 generated songs.

Runs the app's own job in a separate process. It chooses C on held-out artists, computes the verdict, fits all artists,
and computes vectors, clusters and the map of all songs. Rivals are missing, because other programs do not do all of
this; rivals of a single fit are in `benchmarks.mlr`. Memory is the peak resident set of the job.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.libraries import demo_library, generated_library
from benchmarks.support.report import Claim, Settings, at_least, main
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library

SIZES = (5_000, 20_000)

Progress = Callable[[str], None]


def _click(library: Library, progress: Progress) -> dict[str, Any]:
    """Train on plays as the page does, start using the model, and return its row."""
    arguments = {"name": "benchmark", "settings": asdict(LearningSettings())}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    job_id = library.jobs.create("train", arguments)
    command = [sys.executable, "-m", "musicsim", "run-job", str(library.folder), str(job_id)]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    phases: dict[str, float] = {}
    peak_kb = 0
    while process.poll() is None:
        time.sleep(0.2)
        peak_kb = max(peak_kb, _resident_peak_kb(process.pid))
        message = library.jobs.get(job_id).message.split(":")[0].split(",")[0]
        if message:
            phases.setdefault(message, time.perf_counter() - started)
    job = library.jobs.get(job_id)
    if job.state != "done":
        raise RuntimeError(f"the training ended as {job.state}: {job.message}")
    record = library.models.find("benchmark")
    library.models.activate(record.id)
    take_snapshot(library).index.query(take_snapshot(library).X[:1], 10)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = load_report(library.models.path(record.id))
    progress(
        f"{len(library)} songs: {seconds:.0f} s; phases began at {json.dumps({k: round(v) for k, v in phases.items()})}"
    )
    return {
        "seconds": seconds,
        "cpu seconds": after.ru_utime - before.ru_utime,
        "peak MB": peak_kb / 1024,
        "C": report["C"],
        "AUC before": report["leads"]["auc"]["before"],
        "AUC after": report["leads"]["auc"]["after"],
        "AUC low": report["leads"]["auc"]["low"],
        "n_dimensions": record.n_dimensions,
        "phases": {name: round(at, 1) for name, at in phases.items()},
    }


def _resident_peak_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        return int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError):
        return 0


def run(settings: Settings, progress: Progress) -> tuple[list[dict[str, Any]], list[Claim]]:
    """Train on each library."""
    rows: list[dict[str, Any]] = []
    with demo_library(0, progress) as demo:
        progress("training on the demo")
        rows.append({"library": "demo", "songs": len(demo), **_click(demo, progress)})
        demo.models.delete(demo.models.find("benchmark").id)
    with tempfile.TemporaryDirectory() as folder:
        for n_songs in SIZES:
            progress(f"generating {n_songs} songs")
            with generated_library(Path(folder) / str(n_songs), n_songs, random_state=settings.seed) as library:
                progress(f"training on {n_songs} songs")
                rows.append({"library": f"{n_songs:,} songs", "songs": n_songs, **_click(library, progress)})
    claims = [
        at_least(f"{row['library']}: AUC ahead on artists not heard, low end", row["AUC low"], 0.0) for row in rows
    ]
    return rows, claims


if __name__ == "__main__":
    main("training", __doc__.splitlines()[0], run)
