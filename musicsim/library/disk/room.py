"""Room for a cache: what was not used for longest goes."""

import re
from contextlib import suppress
from pathlib import Path


def make_room(folder: Path, names: re.Pattern[str], n_bytes: int, max_bytes: int) -> None:
    """Delete the least recently written or touched files, until `n_bytes` more fit into `max_bytes`.

    Only files whose whole name fits `names` count.
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
