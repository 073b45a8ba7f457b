"""Make a release: ``make release VERSION=1.0.0``; with ``DRY_RUN=1``, rehearse it.

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
import tomllib
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from importlib import metadata, util
from pathlib import Path

from musicsim.commit import COMMIT_FILE, from_git

ROOT = Path(__file__).resolve().parents[1]
BRANCH = "main"
CHECKS = ("make", "test", f"PYTHON={sys.executable}")
"""The command that must succeed before anything is built."""
STATED = {
    "musicsim/__init__.py": '^__version__ = "',
    "CITATION.cff": "^version: ",
    ".zenodo.json": '^  "version": "',
    "codemeta.json": '^  "version": "',
    "README.md": r"(?:\(version |musicsim-)",
    "docs/research/start_here.md": r"\(version ",
    "docs/host/install.md": "musicsim-",
}
"""Files that state the version, each with a pattern of the text in front of it."""
_DATED = {
    "CITATION.cff": 'date-released: "{}"\n',
    ".zenodo.json": '  "publication_date": "{}",\n',
    "codemeta.json": '  "datePublished": "{}",\n',
}
"""Files with the date of the newest release, each with the line for it, which precedes the version."""
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
    start, tag = _check_checkout(checkout), f"v{version}"
    with tempfile.TemporaryDirectory(prefix="release-", ignore_cleanup_errors=True) as folder:
        clone = Path(folder) / "clone"
        print("Commit the release in a temporary clone", flush=True)  # before the output of the commands
        _commit(checkout, clone, version)
        print(f"Run the checks: {' '.join(checks)}", flush=True)
        if subprocess.run(checks, cwd=clone, env=_environment(), check=False).returncode:
            raise ReleaseError("The checks failed: correct the faults that they print above, commit, and start again.")
        print("Build and check the wheel and the sdist", flush=True)
        packages = _build(clone, Path(folder))
        _run(clone, "git", "tag", "--annotate", tag, "--message", version)
        if is_dry_run:
            change = _run(clone, "git", "show", "--stat", "--format=%s")
            print(f"Dry run: nothing was changed. The commit would be:\n\n{change}\n")
        elif _check_checkout(checkout) != start:
            raise ReleaseError(f"The branch {BRANCH} has changed since the release was started: start again.")
        else:
            packages = _take_over(checkout, clone, tag, packages)
    said = "would be tagged. These commands would" if is_dry_run else "is tagged, but not published. These commands"
    files = " ".join(f"dist/{package.name}" for package in packages)
    publish = f"git push --atomic origin {BRANCH} {tag}\n    {Path(sys.executable).with_name('uv')} publish {files}"
    print(f"{tag} {said} publish it:\n\n    {publish}\n", flush=True)
    return [] if is_dry_run else packages


def _check_version(checkout: Path, version: str) -> None:
    """Raise ReleaseError unless a version has three numbers and is newer than all others."""
    number = _read_number(version)
    if number is None:
        raise ReleaseError(f"The version {version!r} is not three numbers: write, for example, VERSION=1.0.0.")
    known = dict.fromkeys(re.findall(r"^## \[(.+?)\]", _read_changes(checkout), re.MULTILINE), "CHANGELOG.md")
    known |= {tag.removeprefix("v"): f"the tag {tag}" for tag in _run(checkout, "git", "tag").split()}
    for name, place in known.items():
        other = _read_number(name)  # None for a heading or tag of another kind
        if other is not None and number <= other:
            raise ReleaseError(f"Version {version} is not newer than {name} ({place}): choose a higher version.")


def _read_number(version: str) -> list[int] | None:
    """Return the three numbers of a version; None if it is written in another way, such as 1.1 or 1.01.0."""
    if not re.fullmatch(_NUMBER, version, re.ASCII):
        return None
    numbers = [int(part) for part in version.split(".")]
    return numbers if ".".join(map(str, numbers)) == version else None


def _check_checkout(checkout: Path) -> str:
    """Return the current commit; raise ReleaseError unless it can be released."""
    branch = _run(checkout, "git", "branch", "--show-current")
    if branch != BRANCH:
        raise ReleaseError(f"The current branch is {branch or 'none'}: run `git switch {BRANCH}`.")
    changed = _run(checkout, "git", "status", "--porcelain")
    if changed:
        example = changed.splitlines()[0].split(maxsplit=1)[1]
        raise ReleaseError(f"The work tree has uncommitted changes, such as {example}: commit or remove them.")
    section = re.search(rf"^{re.escape(_HEADING)}(.*?)(?=^## |\Z)", _read_changes(checkout), re.MULTILINE | re.DOTALL)
    if section is None or not re.search(r"^- ", section[1], re.MULTILINE):
        raise ReleaseError("CHANGELOG.md has no entries under [Unreleased]: describe the changes there.")
    return _run(checkout, "git", "rev-parse", "HEAD")


def _read_changes(checkout: Path) -> str:
    return (checkout / "CHANGELOG.md").read_text(encoding="utf-8")


def _clone(source: Path, target: Path) -> None:
    _run(source, "git", "clone", "--quiet", "--branch", BRANCH, "--single-branch", str(source), str(target))


def _commit(checkout: Path, clone: Path, version: str) -> None:
    """Write the version into all files of a clone, and commit them as the person who makes the release."""
    try:
        committer = _run(checkout, "git", "var", "GIT_COMMITTER_IDENT")
    except ReleaseError:
        raise ReleaseError("git does not know who you are: set user.name and user.email with `git config`.") from None
    _clone(checkout, clone)
    today = date.today()
    for name, before in STATED.items():
        _replace(clone / name, rf"({before}){_NUMBER}", rf"\g<1>{version}")
    for name in ("README.md", "docs/research/start_here.md"):
        _replace(clone / name, _YEAR, str(today.year))
    for name, line in _DATED.items():
        _replace(clone / name, rf"(?:^{line.format('.*')})?(?={STATED[name]})", line.format(today), count=1)
    _replace(clone / "CHANGELOG.md", re.escape(_HEADING), f"{_HEADING}\n## [{version}] - {today}\n")
    name, _, rest = committer.partition(" <")
    _run(clone, "git", "config", "user.name", name)
    _run(clone, "git", "config", "user.email", rest.partition(">")[0])
    _run(clone, "git", "commit", "--quiet", "--all", "--message", f"Release {version}")


def _replace(path: Path, pattern: str, text: str, count: int = 0) -> None:
    """Replace the matches of a pattern in a file; without a match, raise ReleaseError."""
    new, n_found = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=count, flags=re.MULTILINE)
    if not n_found:
        raise ReleaseError(f"{path.name} has no text like {pattern!r}: correct it, or this pattern in docs/release.py.")
    path.write_text(new, encoding="utf-8")


def _build(clone: Path, folder: Path) -> list[Path]:
    """Build the wheel and the sdist of the commit, and check them.

    A second clone contains only committed files; the checks have left others. The wheel is not built from the sdist,
    because only a clone knows the commit that `musicsim --version` prints.
    """
    source, dist, site = folder / "source", folder / "dist", folder / "site"
    _clone(clone, source)
    of_lock = ("--no-build-isolation", "--python", sys.executable)  # with the setuptools of requirements.txt
    uv = (sys.executable, "-m", "uv")
    _run(source, *uv, "build", "--quiet", "--sdist", "--wheel", *of_lock, "--out-dir", str(dist))
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if ".dist-info/" not in name}
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    missing = (in_wheel | _IN_SDIST) - in_sdist - {f"musicsim/{COMMIT_FILE}"}
    if missing:
        raise ReleaseError(f"{sdist.name} lacks {min(missing)}: add it in MANIFEST.in.")
    _run(source, *uv, "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    _check_installed(source, site)
    return [wheel, sdist]


def _check_installed(source: Path, site: Path) -> None:
    """Raise ReleaseError unless an installed wheel states the version, the license and the readme of its source."""
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (version,) = re.findall(rf'^__version__ = "({_NUMBER})"', (source / "musicsim/__init__.py").read_text(), re.M)
    (installed,) = metadata.distributions(path=[str(site)])
    about = installed.metadata
    stated = (installed.version, about["License-Expression"], about["Description-Content-Type"])
    if stated != (version, project["license"], "text/markdown") or not about["Description"]:
        raise ReleaseError(f"The wheel states {stated}: correct [project] in pyproject.toml.")
    said = _run(site, str(site / "bin" / "musicsim"), "--version", PYTHONPATH=str(site))
    if said != f"musicsim {version} ({from_git(source)})":
        raise ReleaseError(f"The wheel prints {said!r} for `musicsim --version`: correct setup.py.")


def _take_over(checkout: Path, clone: Path, tag: str, packages: list[Path]) -> list[Path]:
    """Copy the packages, the tag and the commit into the checkout; undo all if one step fails."""
    dist = checkout / "dist"
    dist.mkdir(exist_ok=True)
    copies = [dist / package.name for package in packages]
    with ExitStack() as undo:
        for package, copy in zip(packages, copies, strict=True):
            undo.callback(copy.unlink, missing_ok=True)
            shutil.copyfile(package, copy)
        _run(checkout, "git", "fetch", "--quiet", "--no-tags", str(clone), f"refs/tags/{tag}:refs/tags/{tag}")
        undo.callback(_run, checkout, "git", "tag", "--delete", tag)
        _run(checkout, "git", "merge", "--quiet", "--ff-only", f"{tag}^{{commit}}")
        undo.pop_all()
    return copies


def _run(folder: Path, *command: str, **additions: str) -> str:
    """Run a command in a folder; return its output, or raise ReleaseError with its complaint."""
    environment = _environment() | additions
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
