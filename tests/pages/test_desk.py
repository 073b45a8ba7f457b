"""Many sessions at one desk: each gets its own result, and a full desk refuses in a sentence."""

import threading

import pytest

from musicsim.errors import MusicsimError
from musicsim.ui.base.desk import MAX_WAITING, Desk, get_desk, result_of
from tests.waiting import PATIENCE_S

N_SESSIONS = 80


class Gate:
    """Work that keeps the desk's thread busy until it is opened."""

    def __init__(self, get_desk: Desk) -> None:
        self._opened, begun = threading.Event(), threading.Event()

        def work(_progress) -> None:
            begun.set()
            assert self._opened.wait(PATIENCE_S)

        get_desk.ask("gate", work, session="gate")
        assert begun.wait(PATIENCE_S)

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def crowded():
    """A desk whose thread is busy, and the function that lets it continue."""
    crowded = Desk("crowded")
    gate = Gate(crowded)
    yield crowded, gate.open
    gate.open()


def test_every_session_gets_its_own_result(crowded):
    get_desk, begin = crowded
    tasks = [get_desk.ask(("queue", n), lambda _progress, n=n: n, session=f"session {n}") for n in range(N_SESSIONS)]
    begin()
    assert all(task.wait(PATIENCE_S) for task in tasks)
    assert [result_of(task) for task in tasks] == list(range(N_SESSIONS))
    again = [get_desk.ask(("queue", n), pytest.fail, session=f"session {n}") for n in range(N_SESSIONS)]
    assert again == tasks, "the results are kept until each session has asked for its own"


def test_newer_request_replaces_only_one_of_the_same_session(crowded):
    get_desk, begin = crowded
    done = []
    other = get_desk.ask("theirs", lambda _progress: done.append("theirs"), session="other")
    shared = get_desk.ask("shared", lambda _progress: done.append("shared"), session="hasty")
    assert get_desk.ask("shared", pytest.fail, session="other") is shared
    last = shared
    for n in range(N_SESSIONS):
        last = get_desk.ask(n, lambda _progress, n=n: done.append(n), instead=last, session="hasty")
    begin()
    assert all(task.wait(PATIENCE_S) for task in (other, shared, last))
    assert sorted(map(str, done)) == sorted(["theirs", "shared", str(N_SESSIONS - 1)])


def test_sessions_take_turns(crowded):
    get_desk, begin = crowded
    done = []
    tasks = [get_desk.ask(("busy", n), lambda _progress: done.append("busy"), session="busy") for n in range(30)]
    tasks.append(get_desk.ask("quiet", lambda _progress: done.append("quiet"), session="quiet"))
    begin()
    assert all(task.wait(PATIENCE_S) for task in tasks)
    assert done[:2] == ["busy", "quiet"]


def test_canceled_task_ends_with_error_that_pages_show(crowded):
    get_desk, _ = crowded
    task = get_desk.ask("figure", pytest.fail, session="first")
    get_desk.cancel("figure")
    assert task.wait(PATIENCE_S)
    assert result_of(task) is None
    with pytest.raises(MusicsimError, match="canceled"):
        task.future.result()


def test_full_desk_refuses_in_a_sentence():
    busy = get_desk("busy")
    gate = Gate(busy)
    try:
        crowd = [busy.ask(("crowd", n), lambda _progress: None, session=f"session {n}") for n in range(MAX_WAITING)]
        with pytest.raises(MusicsimError, match=r"busy with other requests. Try again in a moment\."):
            busy.ask("one more", lambda _progress: None, session="late")
    finally:
        gate.open()
    assert all(task.wait(PATIENCE_S) for task in crowd)
    assert busy.ask("one more", lambda _progress: 7, session="late").future.result(PATIENCE_S) == 7
