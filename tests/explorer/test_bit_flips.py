"""Tests with flipped bits in the arrays of a library: commands work or explain the damage in a sentence."""

import json
import shutil
import sqlite3

import numpy as np
import pytest

from tests.command import run_to_end

COMMANDS = (
    ("list", "--json"), ("similar", "1", "--json"), ("similar", "2", "--model", "Codewords", "--json"),
    ("evaluate", "--truth", "artist", "--json"), ("playlist", "--length", "5", "--json"), ("backup", "BACKUP"),
    ("doctor", "--json"),
)  # fmt: skip
KINDS = {
    "frames": "frames/*/*.npy",
    "aspects": "frames/*/*.npz",
    "vectors": "models/*/vectors.f32",
    "histograms": "models/*/histograms.f32",
    "model arrays": "models/*/model.npz",
    "models": "models/*/model.json",
    "maps": "models/*/map.npz",
    "clusters": "models/*/clusters.npz",
    "walk sources": "walk_sources.npz",
}


def flip(files, rng):
    """Flip 1 to 40 bits of some files, in half of the cases in their headers."""
    only_headers = rng.random() < 0.5
    for _ in range(rng.integers(1, 41)):
        file = files[rng.integers(len(files))]
        data = bytearray(file.read_bytes())
        place = rng.integers(min(len(data), 300) if only_headers else len(data))
        data[place] ^= 1 << rng.integers(8)
        file.write_bytes(data)


def check(arguments, library):
    """Run a command that must succeed or end with a sentence of its own."""
    out, said, code = run_to_end(*arguments, library=library)
    assert code in (0, 1, 3), said  # success, refused, some items failed
    assert "Traceback" not in out + said
    assert "NaN" not in out
    if code == 1:
        assert said.strip().splitlines()[-1].startswith(("error: ", "not evaluated: ")), said
    elif "--json" in arguments:
        json.loads(out)


@pytest.mark.long
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_give_result_or_clear_error(built_library, tmp_path, kind, seed):
    folder = shutil.copytree(built_library, tmp_path / "library")
    files = sorted(folder.glob(KINDS[kind]))
    assert files
    flip(files, np.random.default_rng([seed, *kind.encode()]))
    for command in COMMANDS:
        check([tmp_path / "b" if word == "BACKUP" else word for word in command], folder)
    with sqlite3.connect(folder / "library.sqlite") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.long
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("value", [2.6e38, 1.8e30, np.inf, np.nan])
def test_comparing_commands_report_invalid_vector(built_library, tmp_path, value):
    folder = shutil.copytree(built_library, tmp_path / "library")
    (file,) = folder.glob("models/native-*/vectors.f32")
    vectors = np.fromfile(file, dtype=np.float32)
    vectors[3] = value  # a flipped bit of an exponent can produce these
    vectors.tofile(file)
    for command in (["similar", "2"], ["playlist", "--length", "5"]):
        _, said, code = run_to_end(*command, library=folder)
        assert code == 1, said
        assert f"error: the vectors in {file.parent} are damaged" in " ".join(said.split())
    _, said, code = run_to_end("evaluate", "--truth", "artist", library=folder)
    assert code == 3, said
    assert "not evaluated: Sound: the vectors" in " ".join(said.split())
    _, _, code = run_to_end("doctor", library=folder)
    assert code == 3
    assert run_to_end("list", library=folder)[2] == 0
