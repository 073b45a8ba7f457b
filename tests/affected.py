"""Choose the tests that uncommitted changes can break; ``pytest --changed`` runs these.

Without uncommitted changes, the changes of the last commit count.
"""

import ast
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
# Fixtures of tests that write files or start programs. Tests without them are fast.
SLOW_FIXTURES = frozenset({"made_once", "tmp_path", "tmp_path_factory"})


@dataclass
class Affected:
    """Test files and folders: all tests of `changed` run, and the fast tests of `dependent`."""

    changed: set[Path] = field(default_factory=set)
    dependent: set[Path] = field(default_factory=set)

    def includes(self, item: pytest.Item) -> bool:
        """Return whether a test is to be run."""
        places = {item.path, *item.path.parents}
        is_fast = not SLOW_FIXTURES & set(getattr(item, "fixturenames", ()))
        return not places.isdisjoint(self.changed) or (is_fast and not places.isdisjoint(self.dependent))


def list_changes() -> list[Path]:
    """Return the changed files, relative to the checkout."""

    def git(*arguments: str) -> list[Path]:
        listed = subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
        return [Path(line) for line in listed.splitlines()]

    changed = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return changed or git("diff", "--name-only", "HEAD~1", "HEAD")


def package_of(module: str) -> str:
    """Return the package of a module: the first two names, or three inside of musicsim.extensions."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[:2] == ["musicsim", "extensions"] else 2])


def find_importers() -> dict[str, set[str]]:
    """Return for each package of musicsim the packages that import it."""
    importers: dict[str, set[str]] = defaultdict(set)
    for path in (CHECKOUT / "musicsim").rglob("*.py"):
        importer = package_of(".".join(path.relative_to(CHECKOUT).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("musicsim.") and package_of(name) != importer:
                    importers[package_of(name)].add(importer)
    return importers


def tests_of(package: str) -> Path:
    """Return the file or folder with the tests of a package."""
    folder = "/".join(["tests", *package.split(".")[1:]])
    return CHECKOUT / {"tests/cli": "tests/test_cli.py", "tests/ui": "tests/pages"}.get(folder, folder)


def find_affected(changes: list[Path]) -> Affected:
    """Return what the changed files affect.

    Sources affect their package, and the packages that import it directly or indirectly. Documents affect the tests of
    documents, and tests affect themselves. Any other file affects everything.
    """
    affected = Affected()
    packages: set[str] = set()
    for path in changes:
        if path.suffix == ".md":
            affected.changed |= {CHECKOUT / "tests/test_docs.py", CHECKOUT / "tests/test_documents.py"}
        elif path.parts[0] == "tests" and path.name.startswith("test_"):
            affected.changed.add(CHECKOUT / path)
        elif path.parts[0] == "musicsim" and len(path.parts) > 2 and path.suffix == ".py":
            packages.add(package_of(".".join(path.with_suffix("").parts)))
        else:
            affected.dependent.add(CHECKOUT / "tests")
    affected.changed |= {tests_of(package) for package in packages}
    importers = find_importers()
    waiting, reached = list(packages), set(packages)
    while waiting:
        new = importers[waiting.pop()] - reached
        reached |= new
        waiting += new
    affected.dependent |= {tests_of(package) for package in reached}
    return affected
