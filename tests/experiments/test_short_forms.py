"""Scripts with a short form declare how it differs, and stored short results say whether they are final."""

import json

import pytest

from experiments.support.results import KEPT, ROOT
from musicsim.extensions.paper_tables.paper_tables import short_form

PACKAGES = ("experiments", "benchmarks")
SCRIPTS = [(package, path.stem) for package in PACKAGES for path in sorted((ROOT / package).glob("*.py"))]
SHORT = [path for path in sorted(KEPT.rglob("*.json")) if '"protocol": "short"' in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("package", "name"), SCRIPTS)
def test_script_declares_short_form_if_it_has_one(package, name):
    has_short = "settings.full" in (ROOT / package / f"{name}.py").read_text(encoding="utf-8")
    assert bool(short_form(name, package)) == has_short


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_stored_short_result_is_final_or_worth_running(path):
    package = "benchmarks" if path.parent.name == "benchmarks" else "experiments"
    text = short_form(json.loads(path.read_text(encoding="utf-8"))["name"], package)
    assert "This is final" in text or "The full form is worth running" in text
    assert not text.endswith("."), "tables.py adds the period"
