"""Views of jobs, as the pages draw them, and the states that make a page run again."""

import os

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api.http import http_interface
from musicsim.explorer.job_views import VIEWS


def view(client, name, **query):
    answer = client.get(f"/api/jobs/views/{name}", params=query)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store")
    return answer.json()


def texts(view):
    return [part["text"] for part in view["parts"]]


@pytest.fixture
def job(tiny_library):
    """A running job, and the function that changes it."""
    job_id = tiny_library.jobs.create("refresh", {}, pid=os.getpid())

    def change(**values):
        tiny_library.jobs.update(job_id, **values)
        return job_id

    change(state="running", message="placing songs", done=3, total=60, share=0.25)
    return change


def test_library_has_its_size_and_its_job(client, tiny_library, job):
    shown = view(client, "library")
    assert texts(shown) == [texts(shown)[0], "Updating the models · 3 of 60 steps"]
    assert texts(shown)[0].startswith(f"{len(tiny_library.songs())} songs · ")
    assert [part["share"] for part in shown["parts"]] == [None, 0.25]
    job(done=59)
    assert view(client, "library")["state"] == shown["state"], "numbers move without a run of the page"
    assert "Updating the models · 59 of 60 steps" in texts(view(client, "library"))
    job(cancel_requested=True)
    assert "Updating the models: canceling · 59 of 60 steps" in texts(view(client, "library"))


def test_page_runs_when_jobs_begin_and_end(client, tiny_library, job):
    states = [view(client, "library")["state"]]
    second = tiny_library.jobs.create("backup", {}, pid=os.getpid())
    states.append(view(client, "library")["state"])
    assert "1 job waiting" in texts(view(client, "library"))
    tiny_library.jobs.update(second, state="cancelled")
    states.append(view(client, "library")["state"])
    job(state="done")
    states.append(view(client, "library")["state"])
    assert len(set(states)) == len(states)


@pytest.mark.parametrize("change", [{"cancel_requested": True}, {"pause_requested": True}, {"state": "paused"}])
def test_page_runs_when_the_buttons_of_a_job_change(client, job, change):
    before = view(client, "job", job=job())
    assert texts(before) == ["3 of 60 steps · placing songs"]
    assert view(client, "job", job=job(done=4))["state"] == before["state"]
    assert view(client, "job", job=job(**change))["state"] != before["state"]


def test_page_follows_the_revision_if_it_needs_it(client, tiny_library, job):
    before = [view(client, "job", job=job(), revision=follows)["state"] for follows in (False, True)]
    tiny_library.add_tags([{"song_id": tiny_library.songs()[0].id, "tag": "new", "weight": 1.0}])
    after = [view(client, "job", job=job(), revision=follows)["state"] for follows in (False, True)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False]


def test_ended_job_has_no_progress(client, job):
    assert view(client, "job", job=job(state="done"))["parts"] == []
    assert len(texts(view(client, "library"))) == 1


def test_unknown_views_and_jobs_are_not_found(client):
    assert client.get("/api/jobs/views/nothing").status_code == 404
    assert client.get("/api/jobs/views/job?job=99").status_code == 404


def test_visitors_see_no_jobs(tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    with TestClient(Starlette(routes=http_interface().routes)) as visitor:
        assert [visitor.get(f"/jobs/views/{name}").status_code for name in VIEWS] == [404] * len(VIEWS)
