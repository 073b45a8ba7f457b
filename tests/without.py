"""Remove extensions one by one from a copy of the checkout, and test what is left.

``python -m tests.without NAME...`` does this for the named extensions, and without names for all of them. Each time the
import contracts and the quick tests of the core run in the copy. The exit code is 1 if any of them failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from musicsim.hooks import extensions

CHECKOUT = Path(__file__).parents[1]
TESTS = (
    "tests/test_cli.py", "tests/test_lazy_packages.py", "tests/api/test_routes.py", "tests/explorer/test_jobs.py",
    "tests/explorer/test_models.py", "tests/explorer/test_query.py", "tests/explorer/test_walk.py",
    "tests/explorer/test_words.py", "tests/explorer/health", "tests/library/archive/test_backup.py",
    "tests/library/test_scan_again.py", "tests/library/test_store.py", "tests/pages/test_pages.py",
    "tests/pages/test_playlist.py", "tests/pages/test_train.py",
)  # fmt: skip


def copy_without(name: str, target: Path) -> None:
    """Copy the files of the checkout, except those of an extension and its tests."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    removed = (f"musicsim/extensions/{name}/", f"tests/extensions/{name}/")
    for path in listed:
        source = CHECKOUT / path
        if path and not path.startswith(removed) and source.is_file():
            copy = target / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def is_independent(name: str) -> bool:
    """Test the checkout without an extension; print the output if something failed."""
    with tempfile.TemporaryDirectory(prefix="musicsim-without-") as folder:
        copy_without(name, Path(folder))
        environment = os.environ | {"PYTHONPATH": folder}
        programs = Path(sys.executable).parent
        for command in (
            [str(programs / "lint-imports"), "--no-cache"],
            [sys.executable, "-m", "pytest", "-q", "-m", "not browser and not slow and not thorough", *TESTS],
        ):
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(done.stdout[-8000:], done.stderr[-4000:], sep="\n")
                return False
    return True


def main(names: list[str]) -> int:
    """Test without each of the extensions; return the exit code."""
    failed = []
    for name in names or [extension.name for extension in extensions()]:
        is_good = is_independent(name)
        print(f"without {name}: {'passed' if is_good else 'FAILED'}", flush=True)
        if not is_good:
            failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
