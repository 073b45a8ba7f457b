"""The half of benchmarks._metric_learn that runs where musicsim is not installed."""

import subprocess
import sys
from pathlib import Path

from benchmarks import _metric_learn


def test_the_environment_of_metric_learn_needs_no_musicsim() -> None:
    # None in sys.modules refuses the import, as in an environment without it
    code = f"import runpy, sys; sys.modules['musicsim'] = None; runpy.run_path({str(Path(_metric_learn.__file__))!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
