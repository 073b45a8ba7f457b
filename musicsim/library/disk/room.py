"""Limits on the size of caches."""

import re
from contextlib import suppress
from pathlib import Path


def make_room(folder: Path, names: re.Pattern[str], n_bytes: int, max_bytes: int) -> None:
    """Delete the least recently used files that match `names` until `n_bytes` more fit into `max_bytes`."""
    stats = ((path.stat(), path) for path in folder.iterdir() if names.fullmatch(path.name))
    files = sorted((stat.st_mtime_ns, stat.st_size, path) for stat, path in stats)
    n_bytes += sum(size for _, size, _ in files)
    for _, size, path in files:
        if n_bytes <= max_bytes:
            return
        with suppress(OSError):  # some systems refuse to delete a file that is being read
            path.unlink(missing_ok=True)
            n_bytes -= size
