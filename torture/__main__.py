"""Torture a library: ``python -m torture --minutes 20``; the exit code is 1 if anything was lost."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy: a process that forks must not have threads

from tests.children import load
from torture import damage, kills, mutants, pages
from torture._run import Step, run_steps, table

STEPS = (
    Step("mutated sounds", 5_000, 4.0, mutants.audio_mutants),
    Step("mutated imports", 20 * 2_000, 2.0, mutants.import_mutants),
    Step("mutated vectors", 2_000, 0.7, mutants.vector_mutants),
    Step("mutated models", 2_000, 1.0, mutants.model_mutants),
    Step("mutated backups", 2_000, 1.0, mutants.backup_mutants),
    *(
        Step(f"killed: {name}", 40, 1.2, kills.killed(name), is_long=name == "evaluate")  # evaluate only reads
        for name in kills.KILLED
    ),
    Step("killed: workers", 40, 1.0, kills.workers_killed),
    Step("killed: jobs", 40, 1.0, kills.jobs_killed),
    Step("two writers", 100, 1.0, kills.two_writers),
    Step("full disk", 200, 1.5, damage.full_disk),
    Step("read-only disk", 60, 0.6, damage.read_only),
    Step("rights taken away", 100, 0.8, damage.no_rights),
    Step("clock set back", 20, 0.5, damage.clock_back),
    Step("flipped bits", 500, 2.0, damage.bit_flips),
    Step("page switches", 1_000, 2.0, pages.page_switches, is_long=True),
)
_SHORT_MIN = 10.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="in all; every step is tried at least once")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same attempts")
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt of each step: 7 does 7 again")
    parser.add_argument("--step", action="append", help="only steps whose name has this in it")
    parser.add_argument("--folder", type=Path, help="where to work, and to leave what was lost")
    return parser.parse_args()


def main() -> int:
    """Run the steps, print the table, and return 1 if something was lost."""
    asked, began = _arguments(), time.monotonic()
    steps = [step for step in STEPS if not asked.step or any(part in step.name for part in asked.step)]
    steps = [step for step in steps if asked.step or asked.minutes >= _SHORT_MIN or not step.is_long]
    load()

    def run(folder: Path) -> int:
        outcomes = run_steps(
            steps, folder, 60.0 * asked.minutes, asked.seed, asked.first, lambda line: print(line, flush=True)
        )
        n_lost = sum(len(outcome.lost) for outcome in outcomes)
        print(f"\n{table(outcomes)}\n\nSeed {asked.seed}, {time.monotonic() - began:.0f} s: {n_lost} lost.")
        return n_lost

    if asked.folder:
        return 1 if run(asked.folder.absolute()) else 0
    with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as folder:
        return 1 if run(Path(folder)) else 0


if __name__ == "__main__":
    sys.exit(main())
