"""All version numbers are equal, a checkout reports its commit, and a release is made as a whole or not at all."""

import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest
import yaml

import musicsim
from docs.release import BRANCH, STATED, ReleaseError, main, make_release
from musicsim.commit import COMMIT_FILE, commit, from_git
from tests.command import run

CHECKOUT = Path(__file__).parents[1]
METADATA = (".zenodo.json", "codemeta.json")
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"), yaml.BaseLoader)
VERSION = "99.0.0"  # newer than any version to come
UNRELEASED = "## [Unreleased]\n"
RELEASED = "## [98.0.0] - 2026-01-01\n\n- All.\n"
PASS, FAIL = ("true",), ("false",)


def test_documents_state_package_version():
    version = musicsim.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert CITATION["version"] == version
    changes = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+)\](?: - (.+))?$", changes, re.MULTILINE)
    released = [(version, CITATION["date-released"])] if "date-released" in CITATION else []
    assert headings[:2] == [("Unreleased", ""), *released]
    for name, before in STATED.items():
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        assert set(re.findall(rf"{before}(\d+\.\d+\.\d+)", text, re.MULTILINE)) == {version}, name


def test_changelog_describes_a_release_briefly():
    sections = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## [")
    assert max(len(section.split()) for section in sections) <= 800


def test_metadata_agree_with_citation_and_project():
    zenodo, code = (json.loads((CHECKOUT / name).read_text(encoding="utf-8")) for name in METADATA)
    assert PROJECT["license"] == CITATION["license"]
    released, address = CITATION.get("date-released"), PROJECT.get("urls", {}).get("Repository")
    assert CITATION.get("repository-code") == address
    source = {"identifier": address, "relation": "isSupplementTo", "resource_type": "software"}
    assert zenodo == {
        "title": CITATION["title"],
        "upload_type": "software",
        "description": CITATION["abstract"],
        "creators": [{"name": author["name"]} for author in CITATION["authors"]],
        "access_right": "open",
        "license": CITATION["license"],
        "keywords": CITATION["keywords"],
        "language": "eng",
        "version": CITATION["version"],
    } | ({"publication_date": released} if released else {}) | ({"related_identifiers": [source]} if address else {})
    assert code == {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": PROJECT["name"],
        "description": PROJECT["description"],
        "author": [{"@type": "Organization", "name": author["name"]} for author in CITATION["authors"]],
        "license": f"https://spdx.org/licenses/{CITATION['license']}",
        "keywords": CITATION["keywords"],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {PROJECT['requires-python']}",
        "version": CITATION["version"],
    } | ({"datePublished": released} if released else {}) | ({"codeRepository": address} if address else {})


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def read_state(checkout: Path) -> tuple[str, dict[Path, bytes]]:
    """Return the branches, tags and uncommitted changes of a checkout, and its files."""
    files = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file() and ".git" not in path.parts}
    return git(checkout, "for-each-ref") + git(checkout, "status", "--porcelain"), files


@pytest.fixture
def project(tmp_path):
    """A checkout of the files that a release reads and changes, with an entry in the changelog."""
    folder = tmp_path / "project"
    for name in (*STATED, "CHANGELOG.md", "pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", ".gitignore"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, folder / name)
    code = folder / "codemeta.json"  # as after an earlier release
    code.write_text(code.read_text().replace('  "version"', '  "datePublished": "2020-01-01",\n  "version"'))
    changes = folder / "CHANGELOG.md"
    changes.write_text(
        changes.read_text().replace(UNRELEASED, f"{UNRELEASED}\n### Added\n\n- A new page.\n\n{RELEASED}")
    )
    git(folder, "init", "--quiet", "--initial-branch", BRANCH)
    git(folder, "config", "user.name", "tests")
    git(folder, "config", "user.email", "tests@localhost")
    return commit_all(folder)


@pytest.fixture
def whole_project(project):
    """A checkout from which packages can be built."""
    for name in ("musicsim", "beetsplug"):
        shutil.copytree(
            CHECKOUT / name, project / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return commit_all(project)


def commit_all(folder: Path) -> Path:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "a change")
    return folder


def change_file(project: Path) -> None:
    (project / "README.md").write_text("new")


def add_file(project: Path) -> None:
    (project / "notes.txt").touch()


def switch_branch(project: Path) -> None:
    git(project, "switch", "--quiet", "--create", "feature")


def tag_newer_version(project: Path) -> None:
    git(project, "tag", "v99.0.1")


def remove_entries(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(f"# Changelog\n\n{UNRELEASED}\n### Added\n\n{RELEASED}")
    commit_all(project)


def remove_section(project: Path) -> None:
    (project / "CHANGELOG.md").write_text(f"# Changelog\n\n{RELEASED}")
    commit_all(project)


def remove_citation(project: Path) -> None:
    (project / "README.md").write_text("# musicsim\n")
    commit_all(project)


@pytest.mark.parametrize(
    ("spoil", "version", "message"),
    [
        (change_file, VERSION, r"uncommitted changes, such as README\.md: commit or remove them"),
        (add_file, VERSION, r"uncommitted changes, such as notes\.txt"),
        (switch_branch, VERSION, "The current branch is feature: run `git switch main`"),
        (remove_entries, VERSION, r"no entries under \[Unreleased\]: describe the changes"),
        (remove_section, VERSION, r"no entries under \[Unreleased\]"),
        (remove_citation, VERSION, r"README\.md has no text like"),
        (tag_newer_version, VERSION, r"not newer than 99\.0\.1 \(the tag v99\.0\.1\): choose a higher version"),
        (None, "98.0.0", r"not newer than 98\.0\.0 \(CHANGELOG\.md\)"),
        (None, "1.1", r"'1\.1' is not three numbers: write, for example, VERSION=1\.0\.0"),
        (None, "099.0.0", "'099.0.0' is not three numbers"),
        (None, "", "'' is not three numbers"),
    ],
)
def test_release_is_refused(project, spoil, version, message):
    if spoil:
        spoil(project)
    before = read_state(project)
    with pytest.raises(ReleaseError, match=message):
        make_release(project, version, checks=PASS)
    assert read_state(project) == before


def test_failed_check_changes_nothing(project):
    before = read_state(project)
    with pytest.raises(ReleaseError, match="The checks failed"):
        make_release(project, VERSION, checks=FAIL)
    assert read_state(project) == before


def test_checks_are_skipped_only_in_dry_run(capsys):
    with pytest.raises(SystemExit):
        main([VERSION, "--skip-checks"])
    assert "add --dry-run" in capsys.readouterr().err


@pytest.mark.long
def test_dry_run_changes_nothing(whole_project, capsys):
    before = read_state(whole_project)
    assert make_release(whole_project, VERSION, checks=PASS, is_dry_run=True) == []
    assert read_state(whole_project) == before
    said = capsys.readouterr().out
    assert f"Release {VERSION}" in said
    assert f"git push --atomic origin {BRANCH} v{VERSION}" in said


@pytest.mark.long
def test_release_is_committed_tagged_and_built(whole_project):
    start = git(whole_project, "rev-parse", "HEAD")
    # the checks see the new version
    wheel, sdist = make_release(whole_project, VERSION, checks=("grep", "--quiet", VERSION, "musicsim/__init__.py"))

    assert git(whole_project, "rev-parse", "HEAD~1", f"v{VERSION}^{{commit}}").split() == [
        start, git(whole_project, "rev-parse", BRANCH),
    ]  # fmt: skip
    assert git(whole_project, "cat-file", "-t", f"v{VERSION}") == "tag"
    assert git(whole_project, "status", "--porcelain") == ""

    citation = yaml.load((whole_project / "CITATION.cff").read_text(), yaml.BaseLoader)
    assert (citation["version"], citation["date-released"]) == (VERSION, str(date.today()))
    zenodo, code = (json.loads((whole_project / name).read_text()) for name in METADATA)
    assert (zenodo["version"], zenodo["publication_date"]) == (VERSION, str(date.today()))
    assert (code["version"], code["datePublished"]) == (VERSION, str(date.today()))
    assert (
        f"{UNRELEASED}\n## [{VERSION}] - {date.today()}\n\n### Added\n" in (whole_project / "CHANGELOG.md").read_text()
    )

    assert (wheel.parent, sdist.parent) == (whole_project / "dist",) * 2
    with zipfile.ZipFile(wheel) as archive:
        assert f"\nVersion: {VERSION}\n" in archive.read(f"musicsim-{VERSION}.dist-info/METADATA").decode()
        assert git(whole_project, "rev-parse", "HEAD").startswith(archive.read(f"musicsim/{COMMIT_FILE}").decode())
    with tarfile.open(sdist) as archive:
        assert {f"musicsim-{VERSION}/{name}" for name in ("LICENSE", "README.md", "CITATION.cff")} <= set(
            archive.getnames()
        )

    with pytest.raises(ReleaseError, match="not newer"):
        make_release(whole_project, VERSION, checks=PASS)


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
    head = git(checkout, "rev-parse", "HEAD")
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
