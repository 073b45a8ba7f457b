"""The commit of this program, from git in a checkout or from the file that ``setup.py`` adds to a wheel."""

import subprocess
from pathlib import Path

COMMIT_FILE = "_commit.txt"  # file in a wheel that was built from a checkout
TIMEOUT_S = 10


def commit(package: str) -> str:
    """Return the commit of a package, with "-dirty" if its checkout has changes, or "" if it is unknown."""
    folder = Path(package)
    try:
        return (folder / COMMIT_FILE).read_text(encoding="ascii").strip()
    except OSError:
        return from_git(folder.parent)


def from_git(checkout: str | Path) -> str:
    """Return the commit of a checkout, or "" if the folder is not the root of one."""
    if not (Path(checkout) / ".git").exists():
        return ""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
