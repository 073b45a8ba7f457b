"""Which commit this is: of a checkout by git, of a wheel by the file that ``setup.py`` writes into it."""

import subprocess
from pathlib import Path

COMMIT_FILE = "_commit.txt"
"""In the package, of a wheel that was built in a checkout."""

_PATIENCE_S = 10


def commit(package: str) -> str:
    """The commit that a package is of, with "-dirty" where its checkout has changes; empty where nothing says so."""
    folder = Path(package)
    try:
        return (folder / COMMIT_FILE).read_text(encoding="ascii").strip()
    except OSError:
        return from_git(folder.parent)


def from_git(checkout: str | Path) -> str:
    """The commit of a folder that is itself a checkout, not one somewhere inside of one; else empty."""
    if not (Path(checkout) / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
