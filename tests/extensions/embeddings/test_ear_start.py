"""Tests of the ear by default: when its job starts, and which model is in use afterwards."""

import pytest

from musicsim.explorer import jobs
from musicsim.explorer.job_progress import track
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.embeddings import adding, musicnn
from musicsim.extensions.embeddings.adding import run_ear_job, start_ear
from tests.extensions.embeddings.test_ear import add, write_network


@pytest.fixture
def only_stored(monkeypatch):
    """Jobs that start are stored, but no process runs them."""
    monkeypatch.setattr(jobs, "_start_process", lambda *_: None)


def ear_jobs(library):
    return [job for job in library.jobs.recent() if job.kind == "ear"]


def test_job_starts_once_with_map(tiny_library, installed, only_stored):
    snapshot = take_snapshot(tiny_library)
    start_ear(snapshot)
    start_ear(snapshot)
    (job,) = ear_jobs(tiny_library)
    assert (job.state, job.arguments) == ("waiting", {"use": None})
    for n_jobs in (2, 3, 3):  # after a crash it starts again, but not for ever
        tiny_library.jobs.update(ear_jobs(tiny_library)[0].id, state="interrupted")
        start_ear(snapshot)
        assert len(ear_jobs(tiny_library)) == n_jobs


@pytest.mark.parametrize("state", ["done", "cancelled", "failed"])
def test_ended_job_does_not_start_again(tiny_library, installed, only_stored, state):
    snapshot = take_snapshot(tiny_library)
    start_ear(snapshot)
    tiny_library.jobs.update(ear_jobs(tiny_library)[0].id, state=state)
    for number in range(4):  # later jobs do not hide it
        tiny_library.jobs.create("scan", {"folders": [str(number)]})
    start_ear(snapshot)
    assert len(ear_jobs(tiny_library)) == 1


def test_restored_library_keeps_model_that_user_chose(tiny_library, installed, only_stored, tmp_path):
    add(tiny_library, write_network(tmp_path / "net.onnx"), use=False)
    start_ear(take_snapshot(tiny_library))
    assert tiny_library.jobs.recent() == []


@pytest.mark.parametrize("obstacle", ["setting", "variable", "no weights", "no runtime", "few songs"])
def test_job_does_not_start(tiny_library, installed, only_stored, monkeypatch, obstacle):
    if obstacle == "setting":
        tiny_library.set_setting("learned_ear", False)
    elif obstacle == "variable":
        monkeypatch.setenv("MUSICSIM_EAR", "0")
    elif obstacle == "few songs":
        monkeypatch.setattr(adding, "FIRST_MAP", len(tiny_library) + 1)
    else:
        missing = "musicnn" if obstacle == "no weights" else "onnxruntime"
        find = musicnn.find_spec
        monkeypatch.setattr(musicnn, "find_spec", lambda name: None if name == missing else find(name))
    start_ear(take_snapshot(tiny_library))
    assert ear_jobs(tiny_library) == []


@pytest.mark.long
@pytest.mark.parametrize("is_other_chosen", [False, True])
def test_ear_comes_into_use_unless_user_chose_another_model(tiny_library, installed, is_other_chosen):
    models = tiny_library.models
    chosen = models.codewords() if is_other_chosen else models.native()
    models.activate(chosen.id)
    with track(tiny_library, tiny_library.jobs.create("ear", {"use": None})) as progress:
        run_ear_job(tiny_library, progress=progress, use=None)
    joined = models.find("Sound and MusiCNN")
    assert models.active().id == (chosen.id if is_other_chosen else joined.id)
    assert len(tiny_library.vectors(joined.id).song_ids) == len(tiny_library)
    words = "was added." if is_other_chosen else "is now in use. To return to Sound"
    assert f"Sound and MusiCNN {words}" in ear_jobs(tiny_library)[0].message
