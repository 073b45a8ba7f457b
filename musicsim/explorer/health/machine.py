"""What a library finds on the machine that it is opened on: decoders, cores, room, limits and versions."""

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

from musicsim import __version__
from musicsim.audio import AUDIO_EXTENSIONS, mfcc, without_decoder
from musicsim.audio.features import FRAME, HOP, N_MELS, N_MFCC, SAMPLE_RATE
from musicsim.explorer.health.doctor import NOTE, OK, PROBLEM, Finding, Level
from musicsim.library.db.schema_version import SCHEMA_VERSION

_PYTHONS = ((3, 11), (3, 13))  # the first and the last that are tested
_MIN_FREE, _LITTLE_FREE = 100 << 20, 2 << 30  # bytes
_MIN_OPEN_FILES = 512  # memory maps of models, sockets of forty visitors, and some more
_LITTLE_MEMORY = 1 << 30  # bytes
_MAX_APART = 0.05  # dB of a coefficient; float32 makes 0.001 of it
_AS_INSTALLED = "Install musicsim again: `make app`, or `pip install --upgrade`."


def look_at(folder: Path) -> Iterator[Finding]:
    """Look at the machine as a library in a folder finds it."""
    yield from _of_decoders()
    yield _of_features()
    yield Finding("cores", OK, f"{n_cores()}")
    yield from _of_room(folder)
    yield from _of_memory()
    yield from _of_open_files()
    yield from _of_versions()


def versions() -> dict[str, str]:
    """What is installed, by name: the program, the system, and each library that the program needs."""
    found = {
        "musicsim": __version__,
        "schema": str(SCHEMA_VERSION),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "sqlite": sqlite3.sqlite_version,
    }
    return found | {needed.name: _installed(needed.name) or "missing" for needed in _needed()}


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Memory that this process may use; None where the system does not say."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    if (limit := _limit("RLIMIT_AS")) is not None:
        found = min(found, limit)
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container
        try:
            found = min(found, int((Path("/sys/fs/cgroup") / file).read_text()))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return found


def _limit(name: str) -> int | None:
    """A limit of this process; None where there is none."""
    try:
        import resource
    except ImportError:  # not every system has limits
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _of_decoders() -> Iterator[Finding]:
    lacking = without_decoder()
    if lacking:
        words = f"no decoder for {', '.join(lacking)}"
        yield Finding("decoders", PROBLEM, words, "Install PyAV from its wheel: `pip install --force-reinstall av`.")
    else:
        yield Finding("decoders", OK, f"all {len(AUDIO_EXTENSIONS)} kinds of audio files can be decoded")


def _of_features() -> Finding:
    """Whether the numbers of this processor and its libraries are those of librosa, on two seconds of a rising tone."""
    import librosa

    t = np.arange(2 * SAMPLE_RATE, dtype=np.float32) / SAMPLE_RATE
    y = 0.5 * np.sin(2 * np.pi * (200 * t + 900 * t**2))
    wanted = librosa.feature.mfcc(y=y, sr=SAMPLE_RATE, n_mfcc=N_MFCC, n_fft=FRAME, hop_length=HOP, n_mels=N_MELS)
    apart = float(np.abs(mfcc(y) - wanted.T).max())
    if apart > _MAX_APART:
        words = f"MFCC are {apart:.2g} dB off librosa's: songs are compared by wrong numbers"
        return Finding("arithmetic", PROBLEM, words, _AS_INSTALLED)
    return Finding("arithmetic", OK, f"MFCC are librosa's, within {apart:.1g} dB")


def _of_room(folder: Path) -> Iterator[Finding]:
    place = next(place for place in (folder, *folder.parents) if place.is_dir())
    free = shutil.disk_usage(place).free
    level: Level = PROBLEM if free < _MIN_FREE else NOTE if free < _LITTLE_FREE else OK
    remedy = "" if level == OK else "Free some space: a song takes about a megabyte."
    yield Finding("room", level, f"{free / 1e9:,.1f} GB free where the library is", remedy)


def _of_memory() -> Iterator[Finding]:
    n_bytes = memory_bytes()
    if n_bytes is None:
        return
    is_little = n_bytes < _LITTLE_MEMORY
    remedy = "Add with one worker: `musicsim add --workers 1`." if is_little else ""
    yield Finding("memory", NOTE if is_little else OK, f"{n_bytes / 1e9:,.1f} GB", remedy)


def _of_open_files() -> Iterator[Finding]:
    limit = _limit("RLIMIT_NOFILE")
    if limit is None:
        return
    is_low = limit < _MIN_OPEN_FILES
    remedy = f"Raise it before the start: `ulimit -n {_MIN_OPEN_FILES}`." if is_low else ""
    yield Finding("open files", NOTE if is_low else OK, f"at most {limit:,}", remedy)


def _of_versions() -> Iterator[Finding]:
    first, last = _PYTHONS
    is_tested = first <= sys.version_info[:2] <= last
    yield Finding(
        "version",
        OK if is_tested else NOTE,
        f"musicsim {__version__}, Python {platform.python_version()}, tables of version {SCHEMA_VERSION}",
        "" if is_tested else f"It is tested with Python {'.'.join(map(str, first))} to {'.'.join(map(str, last))}.",
    )
    wrong = [
        f"{needed} (here: {_installed(needed.name) or 'missing'})"
        for needed in _needed()
        if not needed.specifier.contains(_installed(needed.name) or "0", prereleases=True)
    ]
    if wrong:
        yield Finding("version", PROBLEM, f"libraries are too old or missing: {', '.join(wrong)}", _AS_INSTALLED)


def _needed() -> list[Requirement]:
    """The libraries that the program needs; none where it runs without having been installed."""
    try:
        listed = metadata.requires("musicsim") or []
    except metadata.PackageNotFoundError:
        return []
    needed = map(Requirement, listed)
    return [one for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
