"""The background job that exports a file."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from musicsim.explorer.pools import pooled
from musicsim.extensions.exports.export import export
from musicsim.extensions.exports.request import EXPORTS, ExportRequest
from musicsim.library import Library


def run(library: Library, *, what: str, path: str, progress: Any) -> bool:
    """Export `what`, one of EXPORTS, to the file at `path`."""
    Path(path).parent.mkdir(exist_ok=True)
    with pooled(library) if EXPORTS[what].compares else nullcontext():
        done = export(library, what, Path(path), ExportRequest(), progress=progress)
    progress.outcome = f"{done.n_rows:,} rows · {done.n_bytes / 1e6:,.1f} MB · {path}"
    return True
