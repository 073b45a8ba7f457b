"""Run the command line in tests: within this process, or in a separate one."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from musicsim.cli import main
from tests.waiting import PATIENCE_S


def run(*arguments, library, expect=0):
    """Run a command within this process; return its stdout and stderr.

    Starting Python and loading the imports of commands takes longer than most of them.
    """
    out, err, code = run_to_end(*arguments, library=library)
    assert code == expect, err
    return out, err


def run_to_end(*arguments, library):
    """Run a command as :func:`run` does, whatever its exit code; return that, too."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["musicsim", *map(str, arguments)]
    with (
        mock.patch.dict(os.environ, _environment(library)),
        mock.patch.object(sys, "argv", argv),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        else:
            code = 0
    return out.getvalue(), err.getvalue(), code


def run_process(*arguments, library, expect=0):
    """Run ``python -m musicsim`` in a separate process; return its stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "musicsim", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | _environment(library),
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout, done.stderr


def _environment(library):
    return {"MUSICSIM_LIBRARY": str(library), "COLUMNS": "200"}
