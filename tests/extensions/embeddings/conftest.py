"""The package of MusiCNN with random weights."""

import zipfile

import pytest

from tests.extensions.embeddings.checkpoint_files import write_wheel
from tests.extensions.embeddings.test_musicnn import weights


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package with random weights, unpacked where Python finds it."""
    wheel = write_wheel(tmp_path / "wheel.whl", weights())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "packages")
    (tmp_path / "packages" / "musicnn" / "__init__.py").touch()  # without it, an installed package comes first
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.delenv("MUSICSIM_EAR", raising=False)
    return wheel
