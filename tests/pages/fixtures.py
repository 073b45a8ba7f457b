"""Libraries that pages open on."""

import pytest


@pytest.fixture
def empty(store, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(store.folder))
    return store


@pytest.fixture
def full(tiny_library, monkeypatch):
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tiny_library.folder))
    return tiny_library
