"""The wheel, installed outside of any checkout, is the whole app."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from musicsim import __version__
from musicsim.commit import COMMIT_FILE
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.long
CHECKOUT = Path(__file__).parents[1]
_PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
PAGES = ("listen", "playlist", "train", "library", "research")


class Installed(NamedTuple):
    """The location of the installed wheel, and the address of its app."""

    site: Path
    address: str

    def get(self, path: str) -> bytes:
        """Return the body of a response."""
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE_S) as answer:
            return answer.read()


def build_wheel(folder: Path) -> Path:
    """Build the wheel from a copy, so that it excludes earlier builds of the checkout."""
    source = folder / "source"
    skip = shutil.ignore_patterns("__pycache__")
    for package in ("musicsim", "beetsplug"):
        shutil.copytree(CHECKOUT / package, source / package, ignore=skip)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    git = ["git", "-C", source, "-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "the app"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*_PIP, "wheel", "--no-deps", "-w", folder, source], check=True, timeout=PATIENCE_S)
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _install(folder: Path) -> Path:
    site = folder / "site"
    command = [*_PIP, "install", "--no-deps", "--target", site, build_wheel(folder)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    return site


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Iterator[Installed]:
    folder = tmp_path_factory.mktemp("wheel")
    site = _install(folder)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSICSIM_")}
    program = subprocess.Popen(
        [site / "bin" / "musicsim", "app", "--no-browser", "--port", str(23000 + os.getpid() % 9000)],
        cwd=elsewhere,
        env=environment | {"PYTHONPATH": str(site), "HOME": str(elsewhere)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        line = program.stdout.readline()
        found = re.search(r"http://localhost:\d+", line)
        assert found, f"the app said {line!r}"
        yield Installed(site, found[0])
    finally:
        program.terminate()
        try:
            program.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        program.stdout.close()


def test_installed_app_responds(installed):
    assert installed.get("/_stcore/health") == b"ok"
    assert b'<div id="root">' in installed.get("/")
    assert b"libraries" in installed.get("/api/openapi.json")
    assert json.loads(installed.get("/api/libraries")) == ["library"]


def test_wheel_contains_all_data_files(installed):
    def data_files(package: Path) -> set[Path]:
        files = {file.relative_to(package) for file in package.rglob("*") if file.is_file()}
        return {file for file in files if "__pycache__" not in file.parts}

    commit = {Path(COMMIT_FILE)}
    assert data_files(installed.site / "musicsim") == data_files(CHECKOUT / "musicsim") | commit


def test_wheel_reports_its_commit(installed):
    command = [installed.site / "bin" / "musicsim", "--version"]
    environment = os.environ | {"PYTHONPATH": str(installed.site)}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(rf"musicsim {re.escape(__version__)} \([0-9a-f]{{12}}\)\n", said)


def test_wheel_contains_beets_plugin_without_namespace(installed):
    assert [file.name for file in (installed.site / "beetsplug").iterdir() if file.is_file()] == ["musicsim.py"]


def test_checkout_uses_same_streamlit_settings(installed):
    packaged = installed.site / "musicsim" / "ui" / ".streamlit" / "config.toml"
    assert packaged.read_text() == (CHECKOUT / ".streamlit" / "config.toml").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_every_page_renders_without_error(installed, page):
    origin = installed.address
    with connect(
        f"{origin.replace('http', 'ws')}/_stcore/stream",
        origin=origin,
        subprotocols=["streamlit"],
        max_size=None,
        open_timeout=PATIENCE_S,
        ping_interval=None,
    ) as socket:
        request = BackMsg()
        request.rerun_script.page_name = "" if page == "listen" else page
        socket.send(request.SerializeToString())
        drawn = []
        while not drawn or drawn[-1].WhichOneof("type") != "script_finished":
            message = ForwardMsg()
            message.ParseFromString(socket.recv(timeout=PATIENCE_S))
            drawn.append(message)
    elements = [message.delta.new_element for message in drawn if message.WhichOneof("type") == "delta"]
    kinds = [element.WhichOneof("type") for element in elements]
    assert "exception" not in kinds
    assert any("No songs yet" in element.alert.body for element in elements)
    assert any(message.new_session.config.toolbar_mode for message in drawn), "the packaged settings are in use"

    # the first page creates it
    assert (installed.site.parent / "elsewhere" / ".musicsim" / "library").is_dir()
