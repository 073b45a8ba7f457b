"""Tests of the package with MusiCNN's weights: where it is found, and how it is installed."""

import base64
import hashlib
import io
import re
import socket
import tempfile
import zipfile
from pathlib import Path

import pytest

from musicsim.errors import LibraryError
from musicsim.extensions.embeddings import cli, musicnn
from musicsim.extensions.embeddings.musicnn import convert
from musicsim.progress import Canceled
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


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder with the package, from which the real pip installs into `target`, where Python finds it."""
    wheel, lock = write_package(tmp_path)
    (tmp_path / "target").mkdir()
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "TARGET": str(tmp_path / "target")}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.syspath_prepend(tmp_path / "target")
    monkeypatch.setattr(musicnn, "_LOCKS", [lock])
    # an installed package counts only if it is in the target
    monkeypatch.setattr(musicnn, "_is_installed", lambda name: (tmp_path / "target" / name).exists())
    return wheel


def test_weights_are_installed_and_download_is_counted(index):
    messages = []
    target = index.parent / "target"
    assert musicnn.install_weights(lambda message, *_, **__: messages.append(message)) == target / "musicnn"
    assert messages[0].startswith("downloading MusiCNN: ")
    assert messages[-1] == "installing MusiCNN"


@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        ("no file", r"cannot be downloaded.*check the network.*add-ear FILE"),
        ("offline", r"cannot be downloaded \(no connection to the package index\): check the network.*add-ear FILE"),
        ("other file", r"its hash differs.*try again later.*add-ear FILE"),
    ],
)
def test_error_says_what_to_do_and_nothing_is_installed(index, monkeypatch, obstacle, words):
    if obstacle == "other file":
        with zipfile.ZipFile(index, "a") as archive:
            archive.writestr("musicnn/more", "")
    else:
        index.unlink()
    if obstacle == "offline":
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed_port()}/simple")
    with pytest.raises(LibraryError, match=words) as raised:
        musicnn.install_weights()
    assert len(str(raised.value).splitlines()) == 1
    assert list((index.parent / "target").iterdir()) == []


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_canceled_download_leaves_nothing(index, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)

    def cancel(*_, **__):
        raise Canceled

    with pytest.raises(Canceled):
        musicnn.install_weights(cancel)
    assert list((index.parent / "target").iterdir()) == list((tmp_path / "temporary").iterdir()) == []


def test_only_absent_packages_are_installed(index, monkeypatch):
    with index.with_name("musicnn.txt").open("a") as lock:
        lock.write("numpy==0.0.1 \\\n    --hash=sha256:0123\n    # via onnx\n")
    target = index.parent / "target"
    monkeypatch.setattr(musicnn, "_is_installed", lambda name: name == "numpy")
    assert musicnn.install_weights() == target / "musicnn"
    assert not (target / "numpy").exists()


def test_packages_that_run_network_are_locked_with_hashes():
    lock = (Path(musicnn.__file__).parent / "assets" / "ear.txt").read_text()
    for name in ("onnx", "onnxruntime"):
        assert re.search(rf"^{name}==[\d.]+ \\\n    --hash=sha256:", lock, re.MULTILINE)


@pytest.mark.long
def test_same_command_twice_adds_one_model(tiny_library, index):
    n_before = len(tiny_library.models.all())
    for outcome in ("was added", "was already there"):
        said, _ = run("models", "add-ear", "musicnn", "--yes", library=tiny_library.folder)
        assert f"Sound and MusiCNN {outcome}" in said
    assert len(tiny_library.models.all()) == n_before + 2


@pytest.mark.parametrize("arguments", [(), ("musicnn",)])
def test_command_asks_before_download(tiny_library, monkeypatch, arguments):
    monkeypatch.setattr(cli, "find_weights", lambda: None)
    monkeypatch.setattr(cli, "install_weights", lambda _: pytest.fail("downloaded without an answer"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    _, problem = run("models", "add-ear", *arguments, library=tiny_library.folder, expect=1)
    assert "Download MusiCNN (29 MB, ISC license)" in problem
    assert "nothing was downloaded" in problem
    assert tiny_library.jobs.recent() == []
