"""Room for a cache: what was not used for longest goes."""

import re
from contextlib import suppress
from pathlib import Path


def make_room(folder: Path, names: re.Pattern[str], n_bytes: int, max_bytes: int) -> None:
    """Delete files, those written or touched longest ago first, until so many bytes more are allowed.

    Parameters
    ----------
    names : pattern
        Of the files that count; others are left alone.
    n_bytes, max_bytes : int
        How many bytes are to come, and how many there may be with them.
    """
    kept = sorted(
        (stat.st_mtime_ns, stat.st_size, path)
        for path in folder.iterdir()
        if names.fullmatch(path.name)
        for stat in [path.stat()]
    )
    n_bytes += sum(size for _, size, _ in kept)
    for _, size, path in kept:
        if n_bytes <= max_bytes:
            return
        with suppress(OSError):  # some systems keep a file that is being read
            path.unlink(missing_ok=True)
            n_bytes -= size
