"""Libraries to measure on, of benchmarks.libraries."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import libraries
from musicsim.library import Library
from tests.waiting import until


def test_concurrent_experiments_create_demo_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, composed = [], []

    def open_library(folder: Path) -> Library:
        opened.append(folder)
        return Library.open(folder)

    def compose(library: Library, **_: Any) -> None:
        composed.append(library.folder)
        until(lambda: len(opened) == 3)
        library.add_playlists([("a list", None, [])], source="test")

    monkeypatch.setattr(libraries, "DATA_FOLDER", tmp_path)
    monkeypatch.setattr(libraries, "build_demo", compose)
    monkeypatch.setattr(libraries, "Library", SimpleNamespace(open=open_library))
    with ThreadPoolExecutor(3) as pool:
        for library in pool.map(lambda _: libraries.demo_library(0, lambda _: None), range(3)):
            assert library.playlists()
            library.close()
    assert composed == [tmp_path / "demo-0"]
