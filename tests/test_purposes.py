"""Docstrings of estimators and indexes say what they are for, what to use instead, and where they come from."""

import importlib
import re
from collections.abc import Iterator
from inspect import getdoc, isclass

import pytest

PACKAGES = ("codebook", "gaussians", "hashing", "metric", "mixtures", "order", "playlist", "search")
# Brute force, a combination of two parts with papers of their own, and a door to scikit-learn.
WITHOUT_SOURCE = {"ExactIndex", "CompactIndex", "NeighborsTransformer"}


def list_estimators() -> Iterator[tuple[str, type]]:
    for name in PACKAGES:
        package = importlib.import_module(f"musicsim.{name}")
        for exported in package.__all__:
            found = getattr(package, exported)
            if isclass(found) and hasattr(found, "fit"):
                yield name, found


def read_sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring in numpydoc's format, keyed by title; the first has no title."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", text, flags=re.MULTILINE)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(
    ("package", "estimator"), list(list_estimators()), ids=lambda one: getattr(one, "__name__", one)
)
def test_docstring_says_purpose_alternatives_and_sources(package, estimator):
    sections = read_sections(getdoc(estimator))
    purpose, _, rest = sections[""].partition("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]*\.", purpose), "one sentence in one line"
    assert rest.strip(), "the method follows the purpose"
    named = re.findall(r"^([\w.]+) : \S.*\.$", sections["See Also"], re.MULTILINE)
    assert len(named) == len(sections["See Also"].strip().splitlines()) > 0
    for name in named:
        module, _, last = (name if name.startswith("musicsim.") else f"musicsim.{package}.{name}").rpartition(".")
        assert hasattr(importlib.import_module(module), last), name
    if estimator.__name__ in WITHOUT_SOURCE:
        assert "References" not in sections
    else:
        assert re.search(r"^- .*\b(19|20)\d\d\b", sections["References"], re.MULTILINE | re.DOTALL)
