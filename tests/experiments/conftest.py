"""A library that stands for the demo collection, and runs of experiments and benchmarks by their own command line."""

import ast
import importlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from musicsim.library import Library
from tests.sounds import KINDS

RunScript = Callable[..., dict[str, Any]]


def add_listeners(library: Library) -> None:
    """Add plays of listeners who keep to one kind of sound, tags of kinds and artists, and lists of one kind each."""
    rng = np.random.default_rng(0)
    songs = library.songs()
    kinds = [int(song.artist.split()[1]) % 3 for song in songs]
    library.add_plays(
        [
            {"listener": f"{listener}", "song_id": song.id, "count": count}
            for listener in range(30)
            for song, kind in zip(songs, kinds, strict=True)
            if kind == listener % 3 and (count := int(rng.integers(0, 40)))
        ]
    )
    library.add_tags(
        [
            {"song_id": song.id, "tag": tag, "weight": 1.0}
            for song, kind in zip(songs, kinds, strict=True)
            for tag in (KINDS[kind], f"by {song.artist}")
        ]
    )
    of_kind = [[song.id for song, own in zip(songs, kinds, strict=True) if own == kind] for kind in range(3)]
    lists = [(f"{n}", KINDS[n % 3], rng.permutation(of_kind[n % 3])[:8].tolist()) for n in range(60)]
    library.add_playlists(lists, "test")


@pytest.fixture(scope="session")
def heard_library(made_once, styles_library):
    """The styles library with plays, tags and playlists; never changed by a test."""

    def build(folder: Path) -> None:
        shutil.copytree(styles_library, folder / "library")
        with Library.open(folder / "library") as library:
            add_listeners(library)

    return made_once("heard", build) / "library"


@pytest.fixture
def shared(tmp_path, monkeypatch) -> Path:
    """An empty folder of public data sets, and no cache of fetched ones."""
    folder = tmp_path / "shared"
    folder.mkdir()
    monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(folder))
    monkeypatch.setenv("MUSICSIM_DATA_HOME", str(tmp_path / "fetched"))
    return folder


@pytest.fixture
def no_data(shared) -> None:
    """No public data set is on this machine."""


def call_main(module: Any, arguments: list[str]) -> None:
    """Run the last lines of a script, which call ``main``, with its constants as they are now."""
    path = Path(module.__file__)
    last = ast.parse(path.read_text(encoding="utf-8")).body[-1]
    assert isinstance(last, ast.If)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [path.stem, "--json", *arguments])
        exec(compile(ast.Module(last.body, []), path, "exec"), vars(module))


@pytest.fixture
def run_script(heard_library, tmp_path, monkeypatch, capsys) -> RunScript:
    """Run ``python -m NAME --json`` with other constants in the module, on a small demo collection; the report."""
    monkeypatch.setattr("benchmarks.libraries.DATA_FOLDER", tmp_path)
    monkeypatch.setattr("benchmarks.support.report.hash_inputs", lambda _: {})  # of large files
    monkeypatch.setenv("MUSICSIM_DEBIAN_MIRROR", "http://127.0.0.1:9/")  # nothing listens there

    def run(name: str, constants: Mapping[str, Any], *arguments: str, has_data: bool = False) -> dict[str, Any]:
        if not has_data:
            monkeypatch.setenv("MUSICSIM_SHARED_DATA", str(tmp_path / "absent"))
            monkeypatch.setenv("MUSICSIM_DATA_HOME", str(tmp_path / "absent"))
        if not (tmp_path / "demo-0").exists():
            shutil.copytree(heard_library, tmp_path / "demo-0")
        module = importlib.import_module(name)
        for constant, value in constants.items():
            place, _, own = constant.rpartition(".")
            at = importlib.import_module(place) if place else module
            before = getattr(at, own)
            monkeypatch.setattr(at, own, replace(before, **value) if is_dataclass(before) else value)
        if hasattr(module, "one_core_each"):
            monkeypatch.setattr(module, "one_core_each", lambda: ThreadPoolExecutor(1))
        call_main(module, list(arguments))
        report: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return report

    return run
