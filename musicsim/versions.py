"""Versions of Python, musicsim, its libraries and BLAS, for reports of faults and for papers."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import musicsim
from musicsim.commit import commit
from musicsim.extras import APP_EXTRAS

__all__ = ["read_versions", "show_versions"]

_RIVALS = ("faiss-cpu", "implicit", "lightgbm", "metric-learn")
"""Programs that results are compared with; named only if they are installed."""
_NAME, _EXTRA = re.compile(r"[\w.-]+"), re.compile(r"\bextra == ['\"](\w+)")
_VARIABLES = ("MKL_NUM_THREADS", "NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def show_versions() -> None:
    """Print the versions of Python, musicsim, its libraries and BLAS, and the numbers of threads.

    Examples
    --------
    >>> import musicsim as ms
    >>> ms.show_versions()  # doctest: +ELLIPSIS
    System:
    ...
    """
    for title, values in read_versions().items():
        print(f"{title}:")  # noqa: T201
        width = max(map(len, values), default=0)
        for name, value in values.items():
            print(f"  {name:>{width}}: {value}")  # noqa: T201


def read_versions() -> dict[str, dict[str, Any]]:
    """Return what :func:`show_versions` prints, by title and name."""
    system = {
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
        "musicsim": musicsim.__version__,
        "commit": commit(str(Path(musicsim.__file__).parent)) or "unknown",
    }
    if (address := _read_address()) is not None:
        system["address"] = address
    return {
        "System": system,
        "Libraries": dict(_libraries()),
        "Threads": dict(_threads()),
        "Environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def _read_address() -> str | None:
    """Return the address of the project from ``[project.urls]``, once it has one."""
    try:
        entries = metadata.metadata("musicsim").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return None
    return dict(entry.split(", ", 1) for entry in entries).get("Repository")


def _libraries() -> Iterator[tuple[str, str]]:
    """Yield the version of each required library, and of libraries of the app and rivals that are installed."""
    required, optional = set(), set(_RIVALS)
    for line in metadata.requires("musicsim") or []:
        (library,), extra = _NAME.findall(line)[:1], _EXTRA.search(line)
        if extra is None:
            required.add(library)
        elif extra[1] in APP_EXTRAS and library != "musicsim":
            optional.add(library)
    for name in sorted(required | optional, key=str.casefold):
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            if name in required:
                yield name, "not installed"


def _threads() -> Iterator[tuple[str, str]]:
    """Yield the cores, and the threads of each numeric library that is loaded."""
    import numba
    import numpy  # noqa: F401 (loads BLAS, which is then counted)
    from threadpoolctl import threadpool_info

    is_limited = hasattr(os, "sched_getaffinity")
    yield "cores", str(len(os.sched_getaffinity(0)) if is_limited else os.cpu_count())
    yield "numba", f"{numba.get_num_threads()} threads"
    for pool in threadpool_info():
        about = [str(pool[key]) for key in ("version", "architecture", "threading_layer") if pool.get(key)]
        yield pool["internal_api"], f"{pool['num_threads']} threads ({', '.join(about)}), {pool['filepath']}"
