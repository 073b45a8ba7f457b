"""The record that registers an optional feature: one ``EXTENSION`` per package in :mod:`musicsim.extensions`.

The core reads the records, and loads everything else by name when it is first needed. A target such as ``"page:draw"``
names the object ``draw`` in the module ``page`` of the extension's package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

_PACKAGE = "musicsim.extensions"


@dataclass(frozen=True, slots=True)
class Command:
    """A command or a group of commands for the command line."""

    target: str  # a function, or a `typer.Typer` with several commands
    help: str  # one sentence
    panel: str = ""  # heading of the command in `musicsim --help`


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of background job."""

    target: str  # function(library, *, progress, **arguments) -> bool | None; False if the job was canceled
    title: str  # title of the job on the pages
    unit: str = "step"  # unit of the job's progress, as a singular noun
    uses_pool: bool = False  # True if the job uses the library's worker pool (when there is one)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page, in one of the core's tabs or in a tab of its own. The parts of a tab are sorted by `place`."""

    page: str  # "playlist", "train", "library", "research", or "models" for the Models tab of the Train page
    target: str
    """``function(snapshot: Snapshot, *, busy: bool) -> None``; `busy` is True while a job is running. Only the owner
    sees the section, unless the function is marked with :func:`musicsim.public.visitor_may`."""
    place: int = 100  # sort key of tabs and sections; the core uses multiples of 10
    tab: str = ""  # name in URLs of the section's own tab or of one of the core's tabs; by default, the title
    title: str = ""  # title of the section's own tab; this and the next two fields do not apply to the core's tabs
    group: str = ""  # title of the page's section that contains the tab; by default, the tab is its own section
    needs_songs: bool = True  # if True and the library is empty, Research shows a request for music instead


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """Everything that an optional feature adds to the core, referenced by name."""

    name: str
    commands: Mapping[str, Command] = field(default_factory=dict)
    """Keyed by name; “models add-onnx” is the command “add-onnx” in the group “models”."""
    command_options: Mapping[str, str] = field(default_factory=dict)
    """Decorators that add options to commands, keyed by the command's name; see :mod:`musicsim.cli.options`."""
    jobs: Mapping[str, Job] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    routes: str = ""
    """``function(prefix: str) -> list[BaseRoute]``. Only the owner may use the routes, except endpoints marked with
    :func:`musicsim.public.visitor_may`."""
    tables: str = ""
    """Module with SQLAlchemy tables in :data:`musicsim.library.db.schema.metadata`, imported before a library opens."""
    backup_files: tuple[str, ...] = ()
    """Files in the library's folder that contain passwords; a backup contains them only if the user asks for it."""
    hooks: Mapping[str, str] = field(default_factory=dict)
    """Targets, keyed by the name of a hook point; the core module that calls a hook documents its signature."""

    def load(self, target: str) -> Any:
        """Import and return the object that a target names, or the module if the target has no colon."""
        module, _, name = target.partition(":")
        loaded = import_module(f"{_PACKAGE}.{self.name}.{module}")
        return getattr(loaded, name) if name else loaded


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the records of all installed extensions, sorted by name."""
    package = find_spec(_PACKAGE)
    if package is None:
        return ()
    names = sorted(info.name for info in iter_modules(package.submodule_search_locations) if info.ispkg)
    return tuple(import_module(f"{_PACKAGE}.{name}").EXTENSION for name in names)


def load_hooks(point: str) -> list[Any]:
    """Load every target registered for a hook point, sorted by the extension's name."""
    return [extension.load(extension.hooks[point]) for extension in extensions() if point in extension.hooks]


@cache
def sections_of(page: str) -> list[tuple[Extension, Section]]:
    """Return the sections that extensions add to a page, sorted by `place`."""
    pairs = [(extension, section) for extension in extensions() for section in extension.sections]
    return sorted((pair for pair in pairs if pair[1].page == page), key=lambda pair: pair[1].place)
