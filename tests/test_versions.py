"""Versions that users can print."""

import re
from email.message import Message
from importlib import metadata

import musicsim as ms
from musicsim.versions import read_versions


def test_versions_of_python_libraries_and_threads_are_printed(capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ms.show_versions()
    said = capsys.readouterr().out
    assert re.search(rf"^ +musicsim: {re.escape(ms.__version__)}$", said, re.MULTILINE)
    assert re.search(rf"^ +numpy: {re.escape(metadata.version('numpy'))}$", said, re.MULTILINE)
    assert re.search(r"^ +numba: \d+ threads$", said, re.MULTILINE)
    assert re.search(r"^ +openblas: \d+ threads \(", said, re.MULTILINE)
    assert re.search(r"^ +OMP_NUM_THREADS: 1$", said, re.MULTILINE)


def test_address_comes_from_the_installed_package(monkeypatch):
    about = Message()
    monkeypatch.setattr(metadata, "metadata", lambda _name: about)
    assert "address" not in read_versions()["System"]
    about["Project-URL"] = "Changelog, https://example.org/changes"
    about["Project-URL"] = "Repository, https://example.org/musicsim"
    assert read_versions()["System"]["address"] == "https://example.org/musicsim"


def test_each_required_library_has_a_version():
    libraries = read_versions()["Libraries"]
    assert {"numpy", "scipy", "scikit-learn", "librosa", "streamlit"} <= libraries.keys()
    assert "not installed" not in libraries.values()
