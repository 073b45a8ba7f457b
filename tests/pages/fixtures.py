"""Libraries for page tests."""

import sys

import pytest

from tests.waiting import PATIENCE_S


@pytest.fixture(autouse=True)
def _patient_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages show results, not progress: on a busy machine, results take longer than pages wait for them."""
    if "streamlit.testing.v1" not in sys.modules:  # no test of a page
        return
    from musicsim.ui.base.desk import Computation

    wait = Computation.wait
    monkeypatch.setattr(Computation, "wait", lambda task, _seconds: wait(task, PATIENCE_S))


@pytest.fixture
def empty(store, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(store.folder))
    return store


@pytest.fixture
def full(tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    return tiny_library
