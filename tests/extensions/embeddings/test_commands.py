"""Tests of commands that add models of vectors from other programs."""

import json
import shutil

import numpy as np
import pytest

from musicsim.library import Library
from tests.command import run


@pytest.fixture
def library(styles_library, tmp_path):
    return shutil.copytree(styles_library, tmp_path / "library")


@pytest.mark.long
def test_cli_adds_vectors_and_trains_on_several_models(library, tmp_path):
    with Library.open(library) as opened:
        songs = opened.songs()
    X = np.random.default_rng(0).standard_normal((len(songs) + 1, 4))
    np.savez(tmp_path / "net.npz", ids=[song.id for song in songs] + [999], vectors=X)
    out, _ = run("models", "add-embedding", tmp_path / "net.npz", library=library, expect=3)
    assert (
        "net.npz contains 31 vectors with 4 dimensions: 30 for songs in this library, 1 for other songs (999)." in out
    )
    np.savez(tmp_path / "whole.npz", ids=[song.id for song in songs], vectors=X[:-1])
    told = json.loads(
        run("models", "add-embedding", tmp_path / "whole.npz", "--name", "mine", "--json", library=library)[0]
    )
    assert told == {"model": "mine", "vectors": 30, "dimensions": 4, "songs": 30, "unmatched": 0, "problems": []}
    run("models", "add", "rhythm", library=library)
    on = ("--on", "Sound", "--on", "rhythm", "--on", "mine")
    out, _ = run("train", "--from", "genre", "--strength", 100, "--name", "all", *on, library=library)
    for name in ("Sound", "rhythm", "mine", "of the distances"):
        assert name in out
    hits = json.loads(run("similar", 1, "-k", 3, "--model", "all", "--json", library=library)[0])
    assert len(hits) == 3
    (record,) = [m for m in json.loads(run("models", "list", "--json", library=library)[0]) if m["name"] == "all"]
    assert record["settings"]["on"] == ["Sound", "rhythm", "mine"]
    assert sum(source["share"] for source in record["report"]["sources"]) == pytest.approx(1)


def test_rejects_unknown_file_type(library):
    _, problem = run("models", "add-embedding", __file__, library=library, expect=1)
    assert "vectors can only be read from .npz, .npy, .parquet" in " ".join(problem.split())
