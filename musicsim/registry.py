"""Find the extensions, and load what they register in their records (:mod:`musicsim.hooks`).

Extensions are the folders of :mod:`musicsim.extensions`, distributions with an entry point in the group
``musicsim.extensions``, and the owner's files in :mod:`musicsim.own_extensions`. If one of the last two kinds cannot be
loaded, it is reported and left out.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, TypeVar

from musicsim import own_extensions
from musicsim.errors import ExtensionError
from musicsim.hooks import HOOKS, Extension, Section

_log = logging.getLogger(__name__)

T = TypeVar("T")

_PACKAGE = "musicsim.extensions"
_GROUP = _PACKAGE  # of entry points
_RECORD = "EXTENSION"


@dataclass(frozen=True, slots=True)
class Outside:
    """An extension that is not part of musicsim; without a record, `fault` is a sentence about the reason."""

    origin: str  # file or distribution
    record: Extension | None
    fault: str = ""


@cache
def extensions() -> tuple[Extension, ...]:
    """Return the records of all extensions that can be loaded, sorted by name."""
    records = [*_own_records(), *(outside.record for outside in find_outside() if outside.record is not None)]
    return tuple(sorted(records, key=lambda record: record.name))


@cache
def _own_records() -> tuple[Extension, ...]:
    package = find_spec(_PACKAGE)
    if package is None:
        return ()
    names = (f"{_PACKAGE}.{info.name}" for info in iter_modules(package.submodule_search_locations) if info.ispkg)
    return tuple(replace(import_module(name).EXTENSION, package=name) for name in names)


@cache
def find_outside() -> tuple[Outside, ...]:
    """Return the extensions that are not part of musicsim: first those of distributions, then those of the owner."""
    found: list[Outside] = []
    for origin, module, name in (*_find_installed(), *_find_own()):
        known = [*_own_records(), *(outside.record for outside in found if outside.record is not None)]
        try:
            record = _check(getattr(import_module(module), name), known)
        except (Exception, SystemExit) as error:  # code of others may raise anything
            found.append(Outside(origin, None, f"The extension {origin} is left out: {_describe(error)}."))
        else:
            found.append(Outside(origin, replace(record, package=module, origin=origin)))
    return tuple(found)


def _find_installed() -> Iterator[tuple[str, str, str]]:
    """Yield the distribution, the module and the name of each entry point."""
    if not any(map(_mentions_group, sys.path)):
        return  # importlib.metadata would take a fifth of the time in which a command starts
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=_GROUP), key=lambda point: point.value):
        origin = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        yield origin, point.module, point.attr or _RECORD


def _mentions_group(folder: str) -> bool:
    """Return whether a distribution in a folder may have entry points for extensions."""
    try:
        names = [name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return False
    for name in names:
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), "rb") as stream:
                if _GROUP.encode() in stream.read():
                    return True
        except OSError:  # it has none
            continue
    return False


def _find_own() -> Iterator[tuple[str, str, str]]:
    """Yield the file, the module and the name of the record of each of the owner's extensions."""
    for info in iter_modules(own_extensions.__path__):
        if not info.name.startswith("_"):
            file = own_extensions.FOLDER / (info.name if info.ispkg else f"{info.name}.py")
            yield str(file), f"{own_extensions.__name__}.{info.name}", _RECORD


def _check(record: object, known: list[Extension]) -> Extension:
    """Return a record; raise ValueError for another object, a name that is taken, or an unknown hook."""
    if not isinstance(record, Extension):
        raise ValueError(f"its {_RECORD} is not a musicsim.hooks.Extension")
    for kind, own, others in (
        ("name", {record.name}, {other.name for other in known}),
        ("command", set(record.commands), {name for other in known for name in other.commands}),
        ("job", set(record.jobs), {name for other in known for name in other.jobs}),
    ):
        for name in sorted(own & others):
            raise ValueError(f"another extension has the {kind} {name!r}")
    for name in sorted(record.hooks.keys() - {hook.name for hook in HOOKS.values()}):
        raise ValueError(f"{name!r} is not a hook")
    return record


def _describe(error: BaseException) -> str:
    text = " ".join(str(error).split()).removesuffix(".")
    return text if type(error) is ValueError and text else f"{type(error).__name__}: {text}".removesuffix(": ")


def load_each(target_of: Callable[[Extension], str]) -> list[Any]:
    """Load one target of every extension that has it; those outside of musicsim that cannot be loaded are left out."""
    loaded = []
    for extension in extensions():
        if target := target_of(extension):
            try:
                loaded.append(extension.load(target))
            except ExtensionError as error:
                _log.warning("%s", error)
    return loaded


def load_hooks(hook: Callable[..., T]) -> list[T]:
    """Load every implementation of a hook, given by its Protocol, sorted by the extension's name."""
    name = HOOKS[hook].name
    return load_each(lambda extension: extension.hooks.get(name, ""))


@cache
def sections_of(page: str) -> list[tuple[Extension, Section]]:
    """Return the sections that extensions add to a page, sorted by `place`."""
    pairs = [(extension, section) for extension in extensions() for section in extension.sections]
    return sorted((pair for pair in pairs if pair[1].page == page), key=lambda pair: pair[1].place)
