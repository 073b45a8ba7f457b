"""Work that goes on between two runs of a page."""

from starlette.applications import Starlette
from starlette.testclient import TestClient

from musicsim.api import filter_routes
from musicsim.ui.base.desk import Desk, task_routes
from musicsim.ui.base.watching import run_routes
from tests.pages.page_server import run_server
from tests.pages.test_desk import Gate
from tests.waiting import PATIENCE_S


def test_browser_learns_whether_a_run_is_in_progress(tmp_path):
    assert run_server("runs_told", "work", tmp_path) == "[True, 'done', False]"


def test_visitors_may_ask_for_their_tasks(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    desk = Desk("asked")
    gate = Gate(desk)

    def work(progress) -> str:
        progress("measuring", 1, 4)
        return "result"

    tasks = [desk.ask(n, work, session="mine") for n in range(2)]
    with TestClient(Starlette(routes=filter_routes([*task_routes("/base"), *run_routes("/base")]))) as client:
        query = {"task": [task.token for task in tasks]}
        waiting = {"text": "Waiting… (1 of 2)", "share": 0.0, "title": ""}
        assert client.get("/base/tasks", params=query).json() == {"state": "0", "parts": [waiting]}
        gate.open()
        assert all(task.wait(PATIENCE_S) for task in tasks)
        assert client.get("/base/tasks", params=query).json() == {"state": "2", "parts": []}
        assert client.get("/base/tasks", params={"task": ["guess"]}).json()["state"] == "1", "it is forgotten, so done"
        assert client.get("/base/runs/guess").json() == {"is_running": False}


def test_progress_of_a_task_is_its_share():
    desk = Desk("shown")
    gate = Gate(desk)
    task = desk.ask("figure", lambda _progress: None, session="mine")
    task.status = {"message": "measuring", "done": 1, "total": 4}
    with TestClient(Starlette(routes=task_routes())) as client:
        (part,) = client.get("/tasks", params={"task": task.token}).json()["parts"]
    gate.open()
    assert (part["text"], part["share"]) == ("Measuring…", 0.25)
