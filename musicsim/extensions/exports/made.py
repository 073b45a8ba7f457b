"""Exports that lie in a library's folder: where they go, and which there are."""

from pathlib import Path

from musicsim.library import Library

_FOLDER = "exports"


def export_path(library: Library, kind: str, ending: str) -> Path:
    """Where an export that is asked for on the Library page goes; it replaces the one before."""
    return library.folder / _FOLDER / f"{library.name} {kind}{ending}"


def exports_of(library: Library) -> list[Path]:
    """The exports that lie in a library's folder, the latest first."""
    files = [path for path in (library.folder / _FOLDER).glob("*") if path.suffix and not path.name.startswith(".")]
    return sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)
