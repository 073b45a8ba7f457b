"""Tests of the package with MusiCNN's weights: where it is found, and how it is installed."""

import base64
import hashlib
import io
import zipfile

import pytest

from musicsim.errors import LibraryError
from musicsim.extensions.embeddings import cli, musicnn
from musicsim.extensions.embeddings.musicnn import convert
from tests.command import run
from tests.extensions.embeddings.checkpoint_files import write_wheel
from tests.extensions.embeddings.test_musicnn import weights as make_weights


def write_package(folder):
    """Write a wheel of random weights that pip can install, and a lock file with its hash."""
    wheel = write_wheel(folder / "musicnn-0.1.0-py3-none-any.whl", make_weights())
    about = "musicnn-0.1.0.dist-info/"
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("musicnn/__init__.py", "")
        archive.writestr(
            f"{about}METADATA", "Metadata-Version: 2.1\nName: musicnn\nVersion: 0.1.0\nRequires-Dist: absent\n"
        )
        archive.writestr(
            f"{about}WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        lines = []
        for name in archive.namelist():
            data = archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}\n")
        archive.writestr(f"{about}RECORD", "".join(lines) + f"{about}RECORD,,\n")
    lock = folder / "musicnn.txt"
    lock.write_text(f"musicnn==0.1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return wheel, lock


def test_installed_package_is_network_of_its_wheel(installed):
    folder = musicnn.find_weights()
    assert folder == installed.parent / "packages" / "musicnn"
    assert convert(folder) == convert(installed)


@pytest.mark.parametrize("obstacle", ["", "offline", "other file"])
def test_weights_are_installed_or_error_says_what_to_do(tmp_path, monkeypatch, obstacle):
    wheel, lock = write_package(tmp_path)
    if obstacle == "offline":
        wheel.unlink()
    elif obstacle == "other file":
        with zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr("musicnn/more", "")
    target = tmp_path / "target"
    target.mkdir()
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "TARGET": str(target)}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.syspath_prepend(target)
    monkeypatch.setattr(musicnn, "_LOCK", lock)
    if obstacle:
        with pytest.raises(LibraryError, match=r"cannot be downloaded.*check the network.*add-ear FILE"):
            musicnn.install_weights()
        assert not (target / "musicnn").exists()
    else:
        assert musicnn.install_weights() == target / "musicnn"


def test_command_asks_before_download(tiny_library, monkeypatch):
    monkeypatch.setattr(cli, "find_weights", lambda: None)
    monkeypatch.setattr(cli, "install_weights", lambda: pytest.fail("downloaded without an answer"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    _, problem = run("models", "add-ear", library=tiny_library.folder, expect=1)
    assert "Download MusiCNN (29 MB, ISC license)" in problem
    assert "nothing was downloaded" in problem
    assert tiny_library.jobs.recent() == []
