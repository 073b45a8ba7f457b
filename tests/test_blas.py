"""One thread for matrix products, asked for by several at once."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from musicsim._blas import one_blas_thread


def n_threads():
    """Of numpy's library, if its threads belong to the whole process; with OpenMP each thread has a number of its own.

    Those of other packages may have been built for one thread.
    """
    blas = ThreadpoolController().select(user_api="blas").info()
    return {
        library["num_threads"]
        for library in blas
        if library.get("threading_layer") != "openmp" and "numpy" in library["filepath"]
    }


def set_threads(n):
    """Where a thread that lives on had set them, no other could."""
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
def test_the_limit_lasts_until_the_last_is_done_and_leaves_what_was_before(last):
    inside = [one_blas_thread(), one_blas_thread()]
    for limit in inside:
        limit.__enter__()
        assert n_threads() == {1}
    inside[1 - last].__exit__(None, None, None)
    assert n_threads() == {1}
    inside[last].__exit__(None, None, None)
    assert n_threads() == {2}


def test_a_limit_of_the_caller_is_no_hindrance():
    with threadpool_limits(2, "blas"):
        with one_blas_thread():
            assert n_threads() == {1}
        assert n_threads() == {2}
    assert n_threads() == {2}


def test_who_came_first_may_leave_first_and_live_on():
    left, over = threading.Event(), threading.Event()

    def work():
        with one_blas_thread():
            entered.set()
            other_entered.wait(timeout=60)
        left.set()
        over.wait(timeout=60)

    entered, other_entered = threading.Event(), threading.Event()
    first = threading.Thread(target=work)
    first.start()
    entered.wait(timeout=60)
    with one_blas_thread():
        other_entered.set()
        left.wait(timeout=60)
        assert n_threads() == {1}
    assert n_threads() == {2}
    over.set()
    first.join(timeout=60)


def test_a_fit_that_fails_leaves_what_was_before():
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert n_threads() == {2}


def test_threads_that_come_and_go_leave_what_was_before():
    start, seen = threading.Barrier(8), []

    def work():
        start.wait(timeout=60)
        for _ in range(20):
            with one_blas_thread():
                seen.append(n_threads())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(seen) == 160
    assert all(numbers == {1} for numbers in seen)
    assert n_threads() == {2}
