"""One BLAS thread, requested by several threads at once."""

import threading

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from threadpoolctl import ThreadpoolController, threadpool_limits

from musicsim.blas import one_blas_thread
from musicsim.ui.app import app_options
from tests.waiting import PATIENCE_S


def n_threads():
    """Return the threads of numpy's library if they belong to the whole process; with OpenMP they belong to a thread.

    Libraries of other packages may have been built for one thread.
    """
    blas = ThreadpoolController().select(user_api="blas").info()
    return {
        library["num_threads"]
        for library in blas
        if library.get("threading_layer") != "openmp" and "numpy" in library["filepath"]
    }


def set_threads(n):
    """Set the number in a thread that ends: other threads cannot change the setting of a living one."""
    setter = threading.Thread(target=lambda: threadpool_limits(n, "blas"))
    setter.start()
    setter.join()


@pytest.fixture(autouse=True)
def _two_threads():
    before = n_threads()
    if not before:
        pytest.skip("no library of matrix products whose threads belong to the whole process")
    set_threads(2)
    yield
    set_threads(min(before))


@pytest.mark.parametrize("last", [0, 1])
def test_limit_lasts_until_last_exit(last):
    inside = [one_blas_thread(), one_blas_thread()]
    for limit in inside:
        limit.__enter__()
        assert n_threads() == {1}
    inside[1 - last].__exit__(None, None, None)
    assert n_threads() == {1}
    inside[last].__exit__(None, None, None)
    assert n_threads() == {2}


def test_restores_limit_of_caller():
    with threadpool_limits(2, "blas"):
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {2}
    assert n_threads() == {2}


def test_first_thread_may_exit_first():
    left, over = threading.Event(), threading.Event()

    def work():
        with one_blas_thread():
            entered.set()
            other_entered.wait(timeout=PATIENCE_S)
        left.set()
        over.wait(timeout=PATIENCE_S)

    entered, other_entered = threading.Event(), threading.Event()
    first = threading.Thread(target=work)
    first.start()
    entered.wait(timeout=PATIENCE_S)
    with one_blas_thread():
        other_entered.set()
        left.wait(timeout=PATIENCE_S)
        assert n_threads() == {1}
    assert n_threads() == {2}
    over.set()
    first.join(timeout=PATIENCE_S)


def test_failed_fit_restores_limit():
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert n_threads() == {2}


@pytest.mark.long
def test_concurrent_threads_restore_limit():
    start, seen = threading.Barrier(8), []

    def work():
        start.wait(timeout=PATIENCE_S)
        for _ in range(20):
            with one_blas_thread():
                seen.append(n_threads())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)
    assert len(seen) == 160
    assert all(numbers == {1} for numbers in seen)
    assert n_threads() == {2}


@pytest.mark.usefixtures("store")
def test_running_app_has_one_thread():
    with TestClient(Starlette(lifespan=app_options()["lifespan"])):
        assert n_threads() == {1}
    assert n_threads() == {2}
