"""The half of benchmarks.support.metric_learn_process that runs where musicsim is not installed."""

import subprocess
import sys
from pathlib import Path

from benchmarks.support import metric_learn_process
from tests.waiting import PATIENCE_S


def test_metric_learn_environment_runs_without_musicsim() -> None:
    # None in sys.modules refuses the import, as in an environment without it
    path = str(Path(metric_learn_process.__file__))
    code = f"import runpy, sys; sys.modules['musicsim'] = None; runpy.run_path({path!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)
