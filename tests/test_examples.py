"""Each public class and function has an example, and examples run as they are pasted: alone, with nothing imported."""

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import musicsim

ROOT = Path(musicsim.__file__).parent
# The names for scripts and notebooks are those of musicsim, of the packages that it names, and of the demo.
PACKAGES = ("demo", *(name for name in musicsim.__all__ if inspect.ismodule(getattr(musicsim, name))))


def list_public() -> Iterator[tuple[str, str | None]]:
    """Yield the names of public classes and functions, with their docstrings."""
    for module in (musicsim, *(importlib.import_module(f"musicsim.{name}") for name in PACKAGES)):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found) or inspect.isroutine(found) or hasattr(found, "__wrapped__"):
                yield f"{module.__name__}.{name}", inspect.getdoc(found)


def list_modules_with_examples() -> list[str]:
    """Return the names of the modules with examples, without ``musicsim`` and the dot."""
    paths = [path for path in ROOT.rglob("*.py") if "\n    >>> " in path.read_text(encoding="utf-8")]
    return sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)


def test_every_public_class_and_function_has_an_example():
    public = dict(list_public())
    assert len(public) > 150
    assert [name for name, text in public.items() if "\nExamples\n--------\n>>> " not in (text or "")] == []


@pytest.mark.parametrize("module", list_modules_with_examples())
def test_examples_run_as_pasted(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = importlib.import_module(f"musicsim.{module}")
    examples = doctest.DocTestFinder(exclude_empty=True).find(found, globs={})
    assert examples
    for example in examples:
        assert not any(doctest.SKIP in one.options for one in example.examples), f"{example.name} is skipped"
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        report: list[str] = []
        runner.run(example, out=report.append)
        assert not runner.failures, "".join(report)
    assert list(tmp_path.iterdir()) == [], "an example leaves files behind"
