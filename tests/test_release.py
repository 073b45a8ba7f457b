"""All version numbers are equal, and a checkout reports its commit."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import musicsim
from musicsim.commit import COMMIT_FILE, commit, from_git
from tests.command import run

CHECKOUT = Path(__file__).parents[1]


def _citation(field: str) -> str:
    text = (CHECKOUT / "CITATION.cff").read_text(encoding="utf-8")
    return re.search(rf'^{field}: "?([^"\n]+)', text, re.MULTILINE)[1]


def test_documents_state_package_version():
    version = musicsim.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert _citation("version") == version
    changes = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+)\](?: - (\S+))?$", changes, re.MULTILINE)
    assert headings[:2] == [("Unreleased", ""), (version, _citation("date-released"))]
    assert f"(version {version})" in (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_citation_license_matches_project():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert _citation("license") == project["license"]


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one commit of a package."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"], ["tag", "v9"]):
        subprocess.run([*git, *command], check=True)
    return tmp_path


def test_checkout_reports_commit_and_changes(checkout):
    head = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout
    assert commit(str(checkout / "package")) == head[:12]
    (checkout / "package" / "__init__.py").write_text("changed = True\n")
    assert commit(str(checkout / "package")) == f"{head[:12]}-dirty"


def test_folder_inside_foreign_checkout_has_no_commit(checkout):
    assert from_git(checkout / "package") == ""


def test_wheel_reports_recorded_commit(checkout):
    (checkout / "package" / COMMIT_FILE).write_text("0123456789ab")
    assert commit(str(checkout / "package")) == "0123456789ab"


def test_command_prints_version_and_commit(tmp_path):
    out, _ = run("--version", library=tmp_path)
    found = from_git(CHECKOUT)
    assert out == f"musicsim {musicsim.__version__}" + (f" ({found})" if found else "") + "\n"
