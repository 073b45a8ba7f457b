"""Tests of the search for a browser on machines that lack parts of it."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.story
LACK = "node: error while loading shared libraries: libatomic.so.1: cannot open shared object file"


@pytest.mark.parametrize("is_ci", [False, True])
def test_missing_library_is_named_and_browser_tests_are_skipped(tmp_path, is_ci):
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\necho '{LACK}' >&2\nexit 127\n")
    node.chmod(0o755)
    environment = os.environ | {
        "PATH": str(tmp_path),
        "PLAYWRIGHT_NODEJS_PATH": str(node),
        "CI": "true" if is_ci else "",
    }
    # with the path emptied, there is no package manager that could install anything
    done = subprocess.run(
        [sys.executable, "-m", "tests.browser.chromium"], env=environment, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert f"Playwright does not start ({LACK})" in (done.stderr if is_ci else done.stdout)
    assert done.returncode == int(is_ci)
