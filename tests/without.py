"""Remove extensions one by one from a copy of the checkout, and test what is left.

``python -m tests.without NAME...`` does this for the named extensions, and without names for all of them. Each time the
import contracts and tests of the core run in the copy. The exit code is 1 if any of them failed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from musicsim.registry import extensions

CHECKOUT = Path(__file__).parents[1]
# Tests of the core that call hooks: commands, routes, jobs, pages, edges, models, words, checks, backups.
TESTS = (
    "tests/test_cli.py",
    "tests/api/test_routes.py",
    "tests/explorer/health/test_doctor.py::test_healthy_library_has_no_findings",
    "tests/explorer/test_jobs.py::test_every_job_kind_is_implemented",
    "tests/explorer/test_models.py::test_model_of_missing_extension_is_rejected",
    "tests/explorer/test_query.py::test_filters_apply_at_query_time",
    "tests/explorer/test_walk.py::test_every_step_has_reason_and_songs_are_unique",
    "tests/explorer/test_words.py",
    "tests/library/archive/test_backup.py::test_restored_backup_equals_library",
    "tests/library/test_scan_again.py",
    "tests/library/test_store.py",
    "tests/pages/test_pages.py::test_every_page_opens",
    "tests/pages/test_playlist.py::test_playlist_is_saved_with_reasons_and_reopened",
)


def copy_checkout(target: Path) -> None:
    """Copy the files of the checkout, with the compiled kernels next to them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=CHECKOUT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    kernels = (str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("musicsim/**/__pycache__/*.nb[ci]"))
    for path in (*listed, *kernels):
        source = CHECKOUT / path
        if path and source.is_file():
            copy = target / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)  # numba compiles again if the time of a source changes


def find_failures(name: str, copy: Path) -> str:
    """Test a copy without an extension, then restore the extension; return the output of what failed."""
    with tempfile.TemporaryDirectory(prefix="musicsim-removed-") as removed:
        folders = [copy / package / "extensions" / name for package in ("musicsim", "tests")]
        moves = [(folder, Path(removed) / str(i)) for i, folder in enumerate(folders) if folder.exists()]
        for folder, away in moves:
            shutil.move(folder, away)
        try:
            for command in (
                [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
                [sys.executable, "-m", "pytest", "-q", "-m", "not browser and not long", *TESTS],
            ):
                environment = os.environ | {"PYTHONPATH": str(copy)}
                done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    return f"{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
        finally:
            for folder, away in moves:
                shutil.move(away, folder)
    return ""


def main(names: list[str]) -> int:
    """Test without each of the extensions, one per core at a time; return the exit code."""
    n_workers = os.cpu_count() or 1
    failed = []
    with tempfile.TemporaryDirectory(prefix="musicsim-without-") as folder, ThreadPoolExecutor(n_workers) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for i in range(n_workers):
            copy_checkout(Path(folder) / str(i))
            copies.put(Path(folder) / str(i))

        def test(name: str) -> tuple[str, str]:
            copy = copies.get()
            try:
                return name, find_failures(name, copy)
            finally:
                copies.put(copy)

        for name, output in pool.map(test, names or [extension.name for extension in extensions()]):
            print(f"without {name}: {'FAILED' if output else 'passed'}", output, flush=True)
            if output:
                failed.append(name)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
