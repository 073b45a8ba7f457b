"""Tests of models as files: every kind survives a round trip, and crafted files do no harm."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from musicsim.errors import MusicsimError
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation, import_model_file
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.crafted_models import crafted, mutant, parts_of
from tests.learning import CORE_REPRESENTATIONS, Watcher, hush, tag_by_kind
from tests.sounds import open_library, stored_files, write_collection

SOUND = "Sound"
TOGETHER = (SOUND, "tags", "gmm", "harmony")
LEARNED = {
    "full": LearningSettings("genre", C=100.0),
    "on codewords": LearningSettings("genre", ("Codewords",), C=100.0),
    "diagonal": LearningSettings("genre", C=100.0, structure="diagonal"),
    "in closed form": LearningSettings("genre", method="mean"),
    "local": LearningSettings("genre", method="local"),
    "on tags": LearningSettings("genre", ("tags",), C=100.0),
    "on several": LearningSettings("genre", TOGETHER, C=100.0),
    "on several, diagonal": LearningSettings("genre", TOGETHER, C=100.0, structure="diagonal"),
    "on several, local": LearningSettings("genre", TOGETHER, method="local"),
    "answers": LearningSettings("answers", TOGETHER, "order", C=10.0),
}

_SENT = ("full", "on codewords", "on several, local")


@pytest.fixture(scope="module")
def every_kind(twelve_artists, tmp_path_factory):
    """Build a library with a model of each kind. Tests must not change it."""
    folder = tmp_path_factory.mktemp("kinds")
    shutil.copytree(twelve_artists, folder / "library")
    with Library.open(folder / "library") as library:
        tag_by_kind(library)
        for name in CORE_REPRESENTATIONS:
            add_representation(library, RepresentationSettings(name, n_codewords=32, tau=2), name, hush)
        ids = [song.id for song in library.songs()]
        genres = [song.genre for song in library.songs()]
        for a in range(20):
            three = np.random.default_rng(a).choice(24, 3, replace=False).tolist()
            kinds = [genres[i] for i in three]
            odd = next((n for n in range(3) if kinds.count(kinds[n]) == 1), None)
            library.judgments.add("Ann", "odd", [ids[i] for i in three], odd)
        for name, settings in LEARNED.items():
            learn(library, settings, name, Watcher())
        # a model made of other models
        save_model_file(library, library.models.find("on several").id, folder / "sent.musicsim")
        taken = library.models.get(import_model_file(library, folder / "sent.musicsim", hush)).name
        learn(library, LearningSettings("genre", (taken, "rhythm"), C=100.0), "deep", Watcher())
    return folder / "library"


@pytest.fixture
def kinds(every_kind, tmp_path):
    """Open a copy that the test may change."""
    shutil.copytree(every_kind, tmp_path / "kinds")
    with Library.open(tmp_path / "kinds") as library:
        yield library


@pytest.mark.long
@pytest.mark.parametrize("name", [SOUND, "Codewords", *CORE_REPRESENTATIONS, *LEARNED, "deep"])
def test_every_model_kind_round_trips(kinds, tmp_path, name):
    record = kinds.models.find(name)
    save_model_file(kinds, record.id, tmp_path / "sent.musicsim")
    taken = import_model_file(kinds, tmp_path / "sent.musicsim", hush)
    before, after = take_snapshot(kinds, record.id), take_snapshot(kinds, taken)
    ours = dict(zip(before.row_ids.tolist(), before.X, strict=True))
    theirs = dict(zip(after.row_ids.tolist(), after.X, strict=True))
    assert len(ours) == 24
    assert ours.keys() == theirs.keys()
    for song_id, vector in ours.items():
        # features of mixtures are summed in blocks, which contain other songs here
        np.testing.assert_allclose(theirs[song_id], vector, rtol=1e-5, atol=1e-6)
    report = load_report(kinds.models.path(record.id))
    assert bool(report) == (name in LEARNED or name == "deep")
    # as text, because an unmeasured score is NaN
    wanted = json.dumps(report | {"changed": []} if report else {})
    assert json.dumps(load_report(kinds.models.path(taken))) == wanted


# --- crafted files ------------------------------------------------------------------


@pytest.fixture(scope="module")
def six_songs(tmp_path_factory, every_kind):
    """Build a library of six songs, and a valid file with a report. Tests must not change them."""
    folder = tmp_path_factory.mktemp("six")
    with open_library(folder / "library") as library:
        library.add(write_collection(folder / "music", n_songs=2, seconds=2.0), n_workers=1)
        refresh(library)
    with Library.open(every_kind) as library:
        for name in _SENT:
            save_model_file(library, library.models.find(name).id, folder / f"{name}.musicsim")
    return folder


@pytest.fixture
def few(six_songs, tmp_path):
    """Open a copy of the library that the test may change."""
    shutil.copytree(six_songs / "library", tmp_path / "few")
    with Library.open(tmp_path / "few") as library:
        yield library


@pytest.mark.long
def test_crafted_files_fail_clearly_with_little_memory(six_songs, few, tmp_path):
    made = crafted(six_songs / "on codewords.musicsim", tmp_path)
    before = stored_files(few)
    done = subprocess.run(
        [sys.executable, "-m", "tests.crafted_models", few.folder, *made.values()],
        capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"},
    )  # fmt: skip
    told = json.loads(done.stdout)
    for file, code, said in told["ended"]:
        name = os.path.basename(file)
        assert code == 1, (name, said)
        lines = [line for line in said.strip().splitlines() if line != "working"]  # said on a slow machine
        assert len(lines) == 1, (name, said)
        assert lines[0].startswith(f"error: {name}: "), said
        assert lines[0].endswith("."), said
        assert len(lines[0]) < 400, said
    assert len(told["ended"]) == len(made)
    assert told["memory_mb"] < 600
    assert stored_files(few) == before


@pytest.mark.long
def test_mutated_files_are_rejected_or_imported_completely(six_songs, few, tmp_path):
    native = few.models.native().id
    before, vectors = stored_files(few), few.vectors(native).X.copy()
    honest = [parts_of(six_songs / f"{name}.musicsim") for name in _SENT]
    taken, refused = 0, {}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        file = tmp_path / f"{seed}.musicsim"
        file.write_bytes(mutant(honest[seed % len(honest)], rng))
        try:
            model_id = import_model_file(few, file, hush)
        except MusicsimError as error:
            refused[file.name] = str(error)
        else:
            assert np.isfinite(take_snapshot(few, model_id).X).all(), seed
            few.models.delete(model_id)
            taken += 1
        assert stored_files(few) == before, seed
    assert all(why.startswith(name) and "\n" not in why for name, why in refused.items())
    assert min(taken, len(refused)) > 20, "both ways are tried"
    assert {record.kind for record in few.models.all(retired=True)} == {"native", "codewords"}
    np.testing.assert_array_equal(few.vectors(native).X, vectors)
