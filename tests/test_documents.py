"""Generated tables of README and docs are up to date, and prose names experiments only with a kept result."""

import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from experiments.support.results import KEPT, ROOT, read
from experiments.support.tables import BLOCK, documents, tables, updated

PAGES = {path.relative_to(ROOT).as_posix(): path for path in documents()}
FIGURES = PAGES["docs/research/figures.md"]
_NOWHERE = r"/OWNER/|musicsim\[[a-z]|pipx? install musicsim|uvx musicsim"
EXPERIMENT = re.compile(r"experiments\.([a-z]\w*)")


def split_parts(page: str) -> Iterator[str]:
    """Paragraphs, list items and lines of tables, without the generated tables."""
    for paragraph in re.split(r"\n\s*\n", BLOCK.sub("", page)):
        yield from re.split(r"\n(?=\||- |\d+\. )", paragraph)


@pytest.mark.parametrize("name", PAGES)
def test_generated_tables_match_stored_results(name):
    page = PAGES[name].read_text(encoding="utf-8")
    assert page == updated(page), "run `python -m experiments`"


def test_every_table_is_in_a_document():
    pages = [path.read_text(encoding="utf-8") for path in documents()]
    assert sorted(block["name"] for page in pages for block in BLOCK.finditer(page)) == sorted(tables())


def test_figures_are_generated_tables_of_few_columns():
    page = FIGURES.read_text(encoding="utf-8")
    assert [line for line in BLOCK.sub("", page).splitlines() if line.startswith("|")] == []
    assert {line.count("|") for line in page.splitlines() if line.startswith("|")} <= set(range(3, 8))


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"docs/research/coverage.md"}))
def test_prose_mentions_missing_results(name):
    for part in split_parts(PAGES[name].read_text(encoding="utf-8")):
        for experiment in set(EXPERIMENT.findall(part)) - {"sound_prior", "maeb"}:  # these do not write a report
            assert read(experiment) or "its output is not stored" in part, part[:80]


def test_stored_results_record_seed_protocol_and_machine():
    for path in KEPT.rglob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["settings"].keys() >= {"seed", "protocol"}, path.name
        assert any(name.startswith("seconds") for name in report["settings"]), path.name
        assert report["machine"].keys() >= {"cores", "cpu", "python", "versions"}, path.name
        assert report["date"] < "2026-11-22T15" or report.keys() >= {"commit", "inputs"}, path.name


def test_texts_name_no_address_or_package_that_does_not_exist():
    """musicsim is not on a package index, and has no public repository yet."""
    listed = subprocess.run(["git", "grep", "-nE", _NOWHERE], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode > 1:
        pytest.skip("this copy is not a git checkout")
    own = ("pyproject.toml", "tests/test_documents.py", "tests/test_references.py")
    assert [line for line in listed.stdout.splitlines() if not line.startswith(own)] == []
