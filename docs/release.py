"""Make a release: ``make release VERSION=1.1.0``; with ``DRY_RUN=1``, rehearse it.

All steps run in a temporary clone. Only after the last one has succeeded, the checkout gets the commit, the tag, the
wheel and the sdist. A failure therefore leaves nothing half-done. Nothing is pushed or uploaded.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from importlib import metadata, util
from pathlib import Path

from packaging.version import InvalidVersion, Version

from docs.metadata import ROOT, read_citation, write_metadata
from musicsim.commit import COMMIT_FILE, from_git

BRANCH = "main"
CHECKS = ("make", "test", f"PYTHON={sys.executable}")
"""The command that must succeed before anything is built."""
STATED = {
    "musicsim/__init__.py": '^__version__ = "',
    "CITATION.cff": "^version: ",
    "README.md": r"\(version ",
    "docs/research/start_here.md": r"\(version ",
    "docs/host/install.md": "musicsim-",
}
"""Files that state the version, each with a pattern of the text in front of it."""

_NUMBER = r"\d+\.\d+\.\d+"
_YEAR = r"(?<=contributors \()\d{4}"  # in the citations of README.md and docs/research/start_here.md
_HEADING = "## [Unreleased]\n"
_IN_SDIST = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "setup.py"}
# Options of an outer make would reach the checks: PYTEST_ARGS selects tests, and PYTHONPATH hides the installed wheel.
_NOT_INHERITED = ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "PYTEST_ARGS", "PYTHONPATH")


class ReleaseError(Exception):
    """An obstacle to a release; the message says what to do about it."""


def make_release(
    checkout: Path, version: str, *, checks: Sequence[str] = CHECKS, is_dry_run: bool = False
) -> list[Path]:
    """Commit, check, build and tag a version; return the wheel and the sdist, or nothing after a dry run.

    The command `checks` runs in the clone. Raises ReleaseError; the checkout is then as before.
    """
    if util.find_spec("uv") is None:
        raise ReleaseError("uv is not installed: run `.venv/bin/python -m pip install -r requirements/uv.txt`.")
    _check_version(checkout, version)
    start, committer = _check_checkout(checkout), _read_committer(checkout)
    tag = f"v{version}"
    with tempfile.TemporaryDirectory(prefix="release-", ignore_cleanup_errors=True) as folder:
        clone = Path(folder) / "clone"
        _say("Commit the release in a temporary clone")
        _clone(checkout, clone)
        _commit(clone, version, committer)
        _say(f"Run the checks: {' '.join(checks)}")
        if subprocess.run(checks, cwd=clone, env=_environment(), check=False).returncode:
            raise ReleaseError("The checks failed: correct the faults that they print above, commit, and start again.")
        _say("Build and check the wheel and the sdist")
        packages = _build(clone, Path(folder), version)
        _git(clone, "tag", "--annotate", tag, "--message", version)
        if is_dry_run:
            change = _git(clone, "show", "--stat", "--format=%s")
            _say(f"Dry run: nothing was changed. The commit would be:\n\n{change}\n")
            _say_how_to_publish(f"The tag would be {tag}. These commands would publish it", tag, packages)
            return []
        if _check_checkout(checkout) != start:
            raise ReleaseError(f"The branch {BRANCH} has changed since the release was started: start again.")
        packages = _take_over(checkout, clone, tag, packages)
    _say_how_to_publish(f"{tag} is tagged, but not published. These commands publish it", tag, packages)
    return packages


def _say(line: str) -> None:
    print(line, flush=True)  # before the output of the commands


def _say_how_to_publish(introduction: str, tag: str, packages: list[Path]) -> None:
    files = " ".join(f"dist/{package.name}" for package in packages)
    uv = Path(sys.executable).with_name("uv")
    _say(f"{introduction}:\n\n    git push --atomic origin {BRANCH} {tag}\n    {uv} publish {files}\n")


def _check_version(checkout: Path, version: str) -> None:
    """Raise ReleaseError unless a version has three numbers and is newer than all others."""
    if not re.fullmatch(_NUMBER, version) or str(Version(version)) != version:
        raise ReleaseError(f"The version {version!r} is not three numbers: write, for example, VERSION=1.1.0.")
    known = dict.fromkeys(re.findall(r"^## \[(.+?)\]", _read_changes(checkout), re.MULTILINE), "CHANGELOG.md")
    known |= {tag.removeprefix("v"): f"the tag {tag}" for tag in _git(checkout, "tag").split()}
    for name, place in known.items():
        try:
            is_newer = Version(version) > Version(name)
        except InvalidVersion:  # a heading or tag of another kind
            continue
        if not is_newer:
            raise ReleaseError(f"Version {version} is not newer than {name} ({place}): choose a higher version.")


def _check_checkout(checkout: Path) -> str:
    """Return the current commit; raise ReleaseError unless it can be released."""
    branch = _git(checkout, "branch", "--show-current")
    if branch != BRANCH:
        raise ReleaseError(f"The current branch is {branch or 'none'}: run `git switch {BRANCH}`.")
    changed = _git(checkout, "status", "--porcelain")
    if changed:
        example = changed.splitlines()[0].split(maxsplit=1)[1]
        raise ReleaseError(f"The work tree has uncommitted changes, such as {example}: commit or remove them.")
    section = re.search(rf"^{re.escape(_HEADING)}(.*?)(?=^## |\Z)", _read_changes(checkout), re.MULTILINE | re.DOTALL)
    if section is None or not re.search(r"^- ", section[1], re.MULTILINE):
        raise ReleaseError("CHANGELOG.md has no entries under [Unreleased]: describe the changes there.")
    return _git(checkout, "rev-parse", "HEAD")


def _read_changes(checkout: Path) -> str:
    return (checkout / "CHANGELOG.md").read_text(encoding="utf-8")


def _read_committer(checkout: Path) -> tuple[str, str]:
    """Return the name and the address of the person who makes the release."""
    try:
        ident = _git(checkout, "var", "GIT_COMMITTER_IDENT")
    except ReleaseError:
        raise ReleaseError("git does not know who you are: set user.name and user.email with `git config`.") from None
    name, _, rest = ident.partition(" <")
    return name, rest.partition(">")[0]


def _clone(source: Path, target: Path) -> None:
    _git(source, "clone", "--quiet", "--branch", BRANCH, "--single-branch", str(source), str(target))


def _commit(clone: Path, version: str, committer: tuple[str, str]) -> None:
    """Write the version into all files, and commit them."""
    today = date.today()
    for name, before in STATED.items():
        _replace(clone / name, rf"({before}){_NUMBER}", rf"\g<1>{version}")
    for name in ("README.md", "docs/research/start_here.md"):
        _replace(clone / name, _YEAR, str(today.year))
    citation = clone / "CITATION.cff"
    without_date = re.sub(r"^date-released: .*\n", "", citation.read_text(encoding="utf-8"), flags=re.MULTILINE)
    citation.write_text(without_date, encoding="utf-8")
    _replace(citation, "^(version: .*)$", rf'\1\ndate-released: "{today}"')
    _replace(clone / "CHANGELOG.md", re.escape(_HEADING), f"{_HEADING}\n## [{version}] - {today}\n")
    write_metadata(clone)
    for key, value in zip(("user.name", "user.email"), committer, strict=True):
        _git(clone, "config", key, value)
    _git(clone, "add", "--all")
    _git(clone, "commit", "--quiet", "--message", f"Release {version}")


def _replace(path: Path, pattern: str, text: str) -> None:
    """Replace all matches of a pattern in a file; without a match, raise ReleaseError."""
    new, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not count:
        raise ReleaseError(f"{path.name} has no text like {pattern!r}: correct it, or this pattern in docs/release.py.")
    path.write_text(new, encoding="utf-8")


def _build(clone: Path, folder: Path, version: str) -> list[Path]:
    """Build the wheel and the sdist of the commit, and check them.

    A second clone contains only committed files; the checks have left others. The wheel is not built from the sdist,
    because only a clone knows the commit that `musicsim --version` prints.
    """
    source, dist = folder / "source", folder / "dist"
    _clone(clone, source)
    of_lock = ("--no-build-isolation", "--python", sys.executable)  # with the setuptools of requirements.txt
    _run_uv(folder, "build", "--quiet", "--sdist", "--wheel", *of_lock, "--out-dir", str(dist), str(source))
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    _check_contents(wheel, sdist)
    _check_installed(wheel, folder, version, read_citation(source)["license"], from_git(source))
    return [wheel, sdist]


def _check_contents(wheel: Path, sdist: Path) -> None:
    """Raise ReleaseError unless the sdist contains all that a wheel is made from."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    missing = (in_wheel | _IN_SDIST) - in_sdist - {f"musicsim/{COMMIT_FILE}"}
    if missing:
        raise ReleaseError(f"{sdist.name} lacks {min(missing)}: add it in MANIFEST.in.")


def _check_installed(wheel: Path, folder: Path, version: str, licence: str, commit: str) -> None:
    """Install a wheel into an empty folder; raise ReleaseError unless it states its version, license and readme."""
    site = folder / "site"
    _run_uv(folder, "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    (installed,) = metadata.distributions(path=[str(site)])
    about = installed.metadata
    stated = (installed.version, about["License-Expression"], about["Description-Content-Type"])
    if stated != (version, licence, "text/markdown") or not about["Description"]:
        raise ReleaseError(f"{wheel.name} states {stated}: correct [project] in pyproject.toml.")
    said = _run([str(site / "bin" / "musicsim"), "--version"], folder, {"PYTHONPATH": str(site)})
    if said != f"musicsim {version} ({commit})":
        raise ReleaseError(f"{wheel.name} prints {said!r} for `musicsim --version`: correct setup.py.")


def _take_over(checkout: Path, clone: Path, tag: str, packages: list[Path]) -> list[Path]:
    """Copy the packages into dist, and the tag and the commit into the checkout; undo all if one step fails."""
    dist = checkout / "dist"
    dist.mkdir(exist_ok=True)
    copies = [dist / package.name for package in packages]
    with ExitStack() as undo:
        for package, copy in zip(packages, copies, strict=True):
            undo.callback(copy.unlink, missing_ok=True)
            shutil.copyfile(package, copy)
        _git(checkout, "fetch", "--quiet", "--no-tags", str(clone), f"refs/tags/{tag}:refs/tags/{tag}")
        undo.callback(_git, checkout, "tag", "--delete", tag)
        _git(checkout, "merge", "--quiet", "--ff-only", f"{tag}^{{commit}}")
        undo.pop_all()
    return copies


def _git(checkout: Path, *arguments: str) -> str:
    return _run(["git", *arguments], checkout)


def _run_uv(folder: Path, *arguments: str) -> None:
    _run([sys.executable, "-m", "uv", *arguments], folder)


def _run(command: list[str], folder: Path, additions: dict[str, str] | None = None) -> str:
    """Run a command; return its output, or raise ReleaseError with its complaint."""
    environment = _environment() | (additions or {})
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"Correct this error, and start again: `{' '.join(command)}`: {done.stderr.strip()}")
    return done.stdout.strip()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the release that the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--dry-run", action="store_true", help="change nothing outside of the temporary clone")
    parser.add_argument("--skip-checks", action="store_true", help="leave out `make test`; only for a dry run")
    asked = parser.parse_args(arguments)
    if asked.skip_checks and not asked.dry_run:
        parser.error("--skip-checks is only for a dry run: add --dry-run")
    try:
        make_release(ROOT, asked.version, checks=("true",) if asked.skip_checks else CHECKS, is_dry_run=asked.dry_run)
    except ReleaseError as error:
        print(f"{error} Nothing was changed.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Canceled. Nothing was changed.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
