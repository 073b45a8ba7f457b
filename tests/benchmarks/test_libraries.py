"""Libraries to measure on, of benchmarks.libraries."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks import libraries
from musicsim.library import Library


def test_experiments_that_start_together_compose_the_demo_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    composed = []

    def compose(library: Library, **_: Any) -> None:
        composed.append(library.folder)
        time.sleep(0.5)  # the others come in this time
        library.add_playlists([("a list", None, [])], source="test")

    monkeypatch.setattr(libraries, "_FOLDER", tmp_path)
    monkeypatch.setattr(libraries, "build_demo", compose)
    with ThreadPoolExecutor(3) as pool:
        for library in pool.map(lambda _: libraries.demo_library(0, lambda _: None), range(3)):
            assert library.playlists()
            library.close()
    assert composed == [tmp_path / "demo-0"]
