"""Checks of the machine that a library is on: decoders, cores, disk space, limits and versions."""

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

from musicsim import __version__
from musicsim.audio import FRAME, HOP, SAMPLE_RATE, import_librosa, list_undecodable_extensions, mfcc
from musicsim.audio.features import N_MELS, N_MFCC
from musicsim.audio.formats import DECODERS, NOTES_EXTENSIONS
from musicsim.audio.rendering import Lack, find_lack
from musicsim.errors import ExtensionError
from musicsim.explorer.health.doctor import NOTE, OK, PROBLEM, Finding, Level
from musicsim.extras import APP_EXTRAS
from musicsim.hooks import Extension
from musicsim.library import SCHEMA_VERSION
from musicsim.registry import find_outside

_COMPILED = (
    "av", "numba", "pandas", "PIL.Image", "piqp", "pyarrow", "rapidfuzz.process", "scipy.linalg", "sklearn.cluster",
    "soundfile", "soxr", "zstandard",
)  # fmt: skip
"""Modules that load the libraries of the required packages."""
_PYTHONS = ((3, 11), (3, 14))  # oldest and newest tested versions
MIN_FREE, _LITTLE_FREE = 100 << 20, 2 << 30  # bytes
_MIN_OPEN_FILES = 512  # enough for the memory maps of models, the sockets of forty visitors, and a reserve
_LITTLE_MEMORY = 1 << 30  # bytes
_MAX_ERROR = 0.05  # maximum error per coefficient in dB; rounding to float32 causes errors of 0.001 dB
_REINSTALL = "Install musicsim again: `make app`, or `pip install --upgrade`."


def check_machine(folder: Path) -> Iterator[Finding]:
    """Check whether this machine can run a library in `folder`, which does not have to exist."""
    yield from _check_libraries()
    yield from _check_decoders()
    yield _check_features()
    yield Finding("cores", OK, f"{n_cores()}")
    yield _check_disk(folder)
    yield from _check_memory()
    yield from _check_open_files()
    yield from _check_versions()
    yield from _check_extensions()


def versions() -> dict[str, str]:
    """Return the versions of musicsim, the system and the required packages, keyed by name."""
    versions = {
        "musicsim": __version__,
        "schema": str(SCHEMA_VERSION),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "sqlite": sqlite3.sqlite_version,
    }
    return versions | {library.name: _version(library.name) or "missing" for library in _requirements()}


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int | None:
    """Return the memory that this process may use; None if the system does not report it."""
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    if (limit := _limit("RLIMIT_AS")) is not None:
        n_bytes = min(n_bytes, limit)
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # limits of a container
        try:
            n_bytes = min(n_bytes, int((Path("/sys/fs/cgroup") / file).read_text()))
        except (OSError, ValueError):  # the file is missing, or contains "max"
            continue
    return n_bytes


def _limit(name: str) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _check_libraries() -> Iterator[Finding]:
    """Load the compiled packages, because one of them may need a library that this system lacks."""
    for name in _COMPILED:
        try:
            import_module(name)
        except (ImportError, OSError) as error:
            package = name.partition(".")[0]
            words = f"the package {package} cannot be loaded: {error}"
            yield Finding("libraries", PROBLEM, words, "Install the missing library with your system's packages.")


def _check_extensions() -> Iterator[Finding]:
    """List the extensions that are not part of musicsim, and load everything that they register."""
    for outside in find_outside():
        faults = [outside.fault] if outside.record is None else list(_find_faults(outside.record))
        names = tuple(faults) or (outside.origin,)
        if faults:
            yield Finding("extensions", PROBLEM, "an extension cannot be loaded", "Correct or remove it.", names)
        else:
            yield Finding("extensions", OK, "an extension that is not part of musicsim", names=names)


def _find_faults(extension: Extension) -> Iterator[str]:
    for target in extension.targets():
        try:
            extension.load(target)
        except ExtensionError as error:
            yield str(error)


def _check_decoders() -> Iterator[Finding]:
    lacking = list_undecodable_extensions()
    if lacking:
        words = f"no decoder for {', '.join(lacking)}"
        yield Finding("decoders", PROBLEM, words, "Install PyAV from its wheel: `pip install --force-reinstall av`.")
    else:
        yield Finding("decoders", OK, f"all {len(DECODERS)} kinds of audio files can be decoded")
    lacks: dict[Lack, list[str]] = {}
    for kind, suffixes in NOTES_EXTENSIONS.items():
        if lack := find_lack(kind):
            lacks.setdefault(lack, []).extend(suffixes)
    for lack, lacking in lacks.items():
        words = f"{', '.join(lacking)} cannot be decoded: {lack.problem}"
        yield Finding("optional decoders", NOTE, words, lack.remedy)


def _check_features() -> Finding:
    """Compare musicsim's MFCCs of a rising tone with librosa's, on this processor."""
    librosa = import_librosa()

    t = np.arange(2 * SAMPLE_RATE, dtype=np.float32) / SAMPLE_RATE
    y = 0.5 * np.sin(2 * np.pi * (200 * t + 900 * t**2))
    expected = librosa.feature.mfcc(y=y, sr=SAMPLE_RATE, n_mfcc=N_MFCC, n_fft=FRAME, hop_length=HOP, n_mels=N_MELS)
    error = float(np.abs(mfcc(y) - expected.T).max())
    if error > _MAX_ERROR:
        words = f"MFCCs differ from librosa's by {error:.2g} dB: similarities are wrong"
        return Finding("arithmetic", PROBLEM, words, _REINSTALL)
    return Finding("arithmetic", OK, f"MFCCs agree with librosa's to within {error:.1g} dB")


def _check_disk(folder: Path) -> Finding:
    existing = next(place for place in (folder, *folder.parents) if place.is_dir())
    free = shutil.disk_usage(existing).free
    level: Level = PROBLEM if free < MIN_FREE else NOTE if free < _LITTLE_FREE else OK
    remedy = "" if level == OK else "Free up some space: a song takes about a megabyte."
    return Finding("room", level, f"{free / 1e9:,.1f} GB free on the library's disk", remedy)


def _check_memory() -> Iterator[Finding]:
    n_bytes = memory_bytes()
    if n_bytes is not None:
        is_little = n_bytes < _LITTLE_MEMORY
        remedy = "Use one worker: `musicsim add --workers 1`." if is_little else ""
        yield Finding("memory", NOTE if is_little else OK, f"{n_bytes / 1e9:,.1f} GB", remedy)


def _check_open_files() -> Iterator[Finding]:
    limit = _limit("RLIMIT_NOFILE")
    if limit is not None:
        is_low = limit < _MIN_OPEN_FILES
        remedy = f"Raise the limit before you start musicsim: `ulimit -n {_MIN_OPEN_FILES}`." if is_low else ""
        yield Finding("open files", NOTE if is_low else OK, f"at most {limit:,}", remedy)


def _check_versions() -> Iterator[Finding]:
    first, last = _PYTHONS
    is_tested = first <= sys.version_info[:2] <= last
    yield Finding(
        "version",
        OK if is_tested else NOTE,
        f"musicsim {__version__}, Python {platform.python_version()}, database schema {SCHEMA_VERSION}",
        "" if is_tested else f"Tested versions of Python: {'.'.join(map(str, first))} to {'.'.join(map(str, last))}.",
    )
    wrong = [
        f"{required} (installed: {_version(required.name) or 'none'})"
        for required in _requirements()
        if not required.specifier.contains(_version(required.name) or "0", prereleases=True)
    ]
    if wrong:
        yield Finding("version", PROBLEM, f"required packages are outdated or missing: {', '.join(wrong)}", _REINSTALL)


def _requirements() -> list[Requirement]:
    """Return the required packages; empty if musicsim was not installed."""
    try:
        requirements = [Requirement(line) for line in metadata.requires("musicsim") or []]
    except metadata.PackageNotFoundError:
        return []
    return [one for one in requirements if one.name != "musicsim" and _is_required(one)]


def _is_required(requirement: Requirement) -> bool:
    """Return whether the app requires a package here."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in APP_EXTRAS)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
