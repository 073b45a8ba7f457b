"""Cost of a collection: unit costs (docs/host/large_libraries.md), and whether they predict several sizes.

- Files of three to four minutes in every format (those of `benchmarks.ingest`): CPU seconds of `Library.add` and of all
  its processes, and the frames on the disk.
- Different songs of 25 s: CPU seconds of the models that `refresh` fits; features, vectors and database on the disk.
- Drawn libraries without sound (`benchmarks.large_library`): CPU seconds of clusters, map and index, and their size on
  the disk. Also the peak memory of a refresh with nothing to do, and the memory of the app after one visitor has
  opened every page.

Each is measured at two sizes, and every part is compared with the prediction of :data:`COSTS` for that size. The costs
were measured on two cores of an AMD EPYC; CPU seconds differ on other processors.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cluster import CpuSeconds, add
from benchmarks.ingest import long_files, short_songs
from benchmarks.large_library import write_library
from benchmarks.support.app import PAGES, served
from benchmarks.support.memory import alone, family_memory
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from benchmarks.support.streamlit_session import session
from musicsim import LIBRARY_FILE
from musicsim.explorer.refresh.placing import save_clusters_and_map
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot import neighbors
from musicsim.library import Library
from musicsim.library.processes.pools import LocalPool
from musicsim.progress import no_progress

__all__ = ["COSTS", "Cost", "table"]

_COPIES, _FULL_COPIES = (1, 3), (3, 9)  # of the forty files of the mix
_SHORT, _FULL_SHORT = (400, 800), (400, 1_600)
_DRAWN, _FULL_DRAWN = (100_000, 200_000), (100_000, 1_000_000)
_MAX_OFF = 0.2
_N_WORKERS = 2
_SHORT_S = 25.0
_MINUTES = 3.5  # of the average song in the table of docs/host/large_libraries.md
_SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a part of the work or of the disk: fixed, per song, and per hour of sound."""

    what: str
    unit: str
    once: float = 0.0
    song: float = 0.0
    hour: float = 0.0

    def of(self, n_songs: float, hours: float) -> float:
        """Return the cost of a whole collection."""
        return self.once + self.song * n_songs + self.hour * hours


ANALYSING, FRAMES, FITTING = "analyzing the audio", "frames", "fitting and encoding"
DATABASE, FEATURES, PLACING = "database", "features and vectors of two models", "clusters, map and index"
INDEX, REFRESHING, SERVING = "index, map, tables of names", "memory of a refresh", "memory of the app"
COSTS = {
    cost.what: cost
    for cost in (
        Cost(ANALYSING, "CPU s", hour=5.0),
        Cost(FITTING, "CPU s", once=1.0, song=0.005, hour=1.1),
        Cost(PLACING, "CPU s", once=40.0, song=0.00015),
        Cost(FRAMES, "MB", hour=9.7),
        Cost(DATABASE, "MB", once=0.3, song=0.0016),
        Cost(FEATURES, "MB", once=4.4, song=0.0135),
        Cost(INDEX, "MB", song=0.00031),
        Cost(REFRESHING, "MB", once=415.0, song=0.00046),
        Cost(SERVING, "MB", once=455.0, song=0.00106),
    )
}


_PLACING_PHASES = "grouping songs into clusters", "drawing the map"


def table() -> str:
    """Return the table of docs/host/large_libraries.md."""
    lines = ["| 3.5-minute songs | " + " | ".join(f"{n:,}" for n in _SIZES) + " |"]
    lines.append("|---|" + "---|" * len(_SIZES))
    lines.append("| hours of audio | " + " | ".join(f"{n * _MINUTES / 60:,.0f}" for n in _SIZES) + " |")
    for cost in COSTS.values():
        amounts = (_said(cost.of(n, n * _MINUTES / 60), cost.unit) for n in _SIZES)
        lines.append(f"| {cost.what} | " + " | ".join(amounts) + " |")
    return "\n".join(lines)


def _said(amount: float, unit: str) -> str:
    if unit == "CPU s":
        text = f"{amount / 3600:,.0f} core hours" if amount >= 3600 else f"{amount / 60:.0f} core minutes"
        return text.removesuffix("s") if text.startswith("1 ") else text
    scale, name = next((s, n) for s, n in ((1e6, "TB"), (1e3, "GB"), (1.0, "MB")) if amount >= s)
    return f"{amount / scale:.{0 if amount >= 10 * scale else 1}f} {name}"


@dataclass(frozen=True, slots=True)
class _Found:
    """Measured costs of a collection with this many songs and hours."""

    n_songs: int
    hours: float
    amounts: dict[str, float]


def _mb(folder: Path, pattern: str = "**/*") -> float:
    return sum(path.stat().st_size for path in folder.glob(pattern) if path.is_file()) / 1e6


class _Phases:
    """CPU seconds of this process by the phase that a refresh reports."""

    def __init__(self) -> None:
        self._began, self._phase = time.process_time(), ""
        self._seconds: Counter[str] = Counter()

    def __call__(self, text: str, done: int = 0, total: int = 0) -> None:
        now = time.process_time()
        self._seconds[self._phase] += now - self._began
        self._began, self._phase = now, text

    def total(self) -> float:
        """Return the sum of all phases except those of :data:`PLACING`, which drawn libraries measure."""
        self("")
        return sum(seconds for phase, seconds in self._seconds.items() if phase not in _PLACING_PHASES)


def _analyzed(folder: Path, n_copies: int, seed: int, progress: Progress) -> _Found:
    files, seconds = long_files(folder / "music", n_copies, seed)
    progress(f"{len(files)} files, {seconds / 3600:.1f} hours")
    cpu = CpuSeconds()
    add(folder / "library", folder / "music", LocalPool(_N_WORKERS), cpu)
    return _Found(len(files), seconds / 3600, {ANALYSING: cpu.total, FRAMES: _mb(folder / "library" / "frames")})


def _fitted(folder: Path, n_songs: int, seed: int, progress: Progress) -> _Found:
    progress(f"{n_songs} different songs")
    short_songs(folder / "music", n_songs, seed, seconds=_SHORT_S)
    add(folder / "library", folder / "music", LocalPool(_N_WORKERS))
    phases = _Phases()
    with Library.open(folder / "library") as library:
        refresh(library, progress=phases)
    amounts = {
        FITTING: phases.total(),
        DATABASE: _mb(folder / "library", f"{LIBRARY_FILE}*"),
        FEATURES: _mb(folder / "library" / "models"),
    }
    return _Found(n_songs, n_songs * _SHORT_S / 3600, amounts)


def _drawn(folder: Path, n_songs: int, seed: int, progress: Progress) -> _Found:
    progress(f"drawing {n_songs} songs")
    with write_library(folder, n_songs, random_state=seed) as library:
        native = library.models.native()
        progress("clusters, map and index")
        began = time.process_time()
        save_clusters_and_map(library, native, no_progress)
        placing = time.process_time() - began
    progress("a refresh")
    refreshing = alone(_refreshed, folder)["mb"]
    progress("the app")
    serving = _memory_of_the_app(folder)
    kept = (_mb(folder, pattern) for pattern in ("models/*/index/*", "models/*/*.npz", "cache/*"))
    amounts = {
        PLACING: placing,
        DATABASE: _mb(folder, f"{LIBRARY_FILE}*"),
        INDEX: sum(kept),
        REFRESHING: refreshing,
        SERVING: serving,
    }
    return _Found(n_songs, n_songs * _MINUTES / 60, amounts)


def _refreshed(folder: Path) -> dict[str, Any]:
    with Library.open(folder) as library:
        return {"finished": refresh(library)}


def _memory_of_the_app(folder: Path) -> float:
    async def visit(address: str) -> None:
        async with session(address) as of:
            await of.open()
            for path in PAGES:
                await of.switch("" if path == "listen" else path)

    app = [sys.executable, "-m", "musicsim", "app", "--no-browser", "--port={port}", f"--library={folder}"]
    with served(app) as (address, server):
        asyncio.run(visit(address))
        return family_memory(server)["pss"] / 1e6


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[dict[str, Any]] = []
    for measure, short, full in (
        (_analyzed, _COPIES, _FULL_COPIES),
        (_fitted, _SHORT, _FULL_SHORT),
        (_drawn, _DRAWN, _FULL_DRAWN),
    ):
        if measure is _drawn:
            with tempfile.TemporaryDirectory(prefix="musicsim-scale-") as name:
                progress("compiling")
                _drawn(Path(name), neighbors.INDEXED_FROM, settings.seed, lambda line: None)
        for size in full if settings.full else short:
            with tempfile.TemporaryDirectory(prefix="musicsim-scale-") as name:
                found = measure(Path(name), size, settings.seed, progress)
            for what, amount in found.amounts.items():
                cost = COSTS[what]
                said = cost.of(found.n_songs, found.hours)
                row = {"what": what, "songs": found.n_songs, "hours": found.hours, "unit": cost.unit}
                rows.append(row | {"measured": amount, "estimated": said, "off": amount / said - 1.0})
                progress(f"{what}: {amount:.4g} {cost.unit}, estimated {said:.4g}")
    claims = [
        at_most(f"{row['what']}, {row['songs']:,} songs: off by, share", abs(row["off"]), _MAX_OFF) for row in rows
    ]
    return rows, claims


if __name__ == "__main__":
    main(
        "scale", __doc__.splitlines()[0], run, rivals=("av", "openTSNE", "scikit-learn"),
        short="at most 3 of 9 copies of the long files, 800 of 1,600 short files, and 200,000 of 1,000,000 "
        "drawn songs",
    )  # fmt: skip
