"""The command ``musicsim info``."""

from musicsim.cli._console import JsonOption, LibraryOption, emit, open_library, show


def info(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Show what the library holds, which model is in use, and what is running."""
    from musicsim.explorer import jobs
    from musicsim.explorer.refresh.outdated import pending_upgrade

    with open_library(library) as lib:
        record, job = lib.models.active(), jobs.current(lib)
        facts = {"library": str(lib.folder), **lib.counts(), "roots": [str(root) for root in lib.files.roots()]}
        facts["model"] = record and {
            "id": record.id,
            "name": record.name,
            "features": record.n_features,
            "dimensions": record.n_dimensions,
            "fitted_on_songs": record.n_songs_fitted,
        }
        upgrade = pending_upgrade(lib)
        facts["upgrade"] = upgrade and upgrade.words
        facts["job"] = job and {"kind": job.kind, "state": job.state, "done": job.done, "total": job.total}
    if as_json:
        emit(facts)
        return
    show((), [(name, f"{value:.2f}" if isinstance(value, float) else value) for name, value in facts.items()])
