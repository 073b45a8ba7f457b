"""The command ``musicsim info``."""

from musicsim.cli.console import JsonOption, LibraryOption, emit, open_library, show
from musicsim.explorer import jobs
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.rendering import render_fields


def info(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    with open_library(library) as lib:
        record, job = lib.models.active(), jobs.current(lib)
        facts = {"library": str(lib.folder), **lib.counts(), "roots": [str(root) for root in lib.files.roots()]}
        renamed = {"features": "n_features", "dimensions": "n_dimensions", "fitted_on_songs": "n_songs_fitted"}
        facts["model"] = record and render_fields(record, "id", "name", **renamed)
        upgrade = pending_upgrade(lib)
        facts["upgrade"] = upgrade and upgrade.words
        facts["job"] = job and render_fields(job, "kind", "state", "done", "total")
    if as_json:
        emit(facts)
        return
    show((), [(name, f"{value:.2f}" if isinstance(value, float) else value) for name, value in facts.items()])
