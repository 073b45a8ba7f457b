"""Find the extensions, and load what they register in their records (:mod:`musicsim.hooks`)."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any, TypeVar

from musicsim.hooks import HOOKS, Extension, Section

T = TypeVar("T")

_PACKAGE = "musicsim.extensions"


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the records of all installed extensions, sorted by name."""
    package = find_spec(_PACKAGE)
    if package is None:
        return ()
    names = sorted(info.name for info in iter_modules(package.submodule_search_locations) if info.ispkg)
    packages = [f"{_PACKAGE}.{name}" for name in names]
    return tuple(replace(import_module(name).EXTENSION, package=name) for name in packages)


def load_hooks(hook: Callable[..., T]) -> list[T]:
    """Load every implementation of a hook, given by its Protocol, sorted by the extension's name."""
    name = HOOKS[hook].name
    return _load_all(lambda extension: extension.hooks.get(name, ""))


def load_field(name: str) -> list[Any]:
    """Load the target in a field of every record, such as ``"settings"``, sorted by the extension's name."""
    return _load_all(attrgetter(name))


def _load_all(target_of: Callable[[Extension], str]) -> list[Any]:
    return [extension.load(target) for extension in extensions() if (target := target_of(extension))]


@cache
def sections_of(page: str) -> list[tuple[Extension, Section]]:
    """Return the sections that extensions add to a page, sorted by `place`."""
    pairs = [(extension, section) for extension in extensions() for section in extension.sections]
    return sorted((pair for pair in pairs if pair[1].page == page), key=lambda pair: pair[1].place)
