"""Units, desktop files and compose files of documents and checkout pass their own programs as they are.

nginx and Caddy have their test in ``tests/benchmarks/test_proxy.py``.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
DOCUMENTS = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```\w*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
UNIT, DESKTOP, COMPOSE = r"^\[Unit\]$", r"^\[Desktop Entry\]$", r"^services:$"
ENDINGS = {UNIT: (".service",), DESKTOP: (".desktop",), COMPOSE: (".yaml", ".yml")}


def find_files(sign: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the blocks and files that have a line like this."""
    for page in DOCUMENTS:
        for number, fence in enumerate(FENCE.finditer(page.read_text(encoding="utf-8"))):
            if re.search(sign, fence[2], re.MULTILINE):
                yield f"{page.relative_to(CHECKOUT)}:{number}", fence[2]
    for folder in ("docker", "docs", "musicsim"):
        for path in sorted((CHECKOUT / folder).rglob("*")):
            if path.suffix in ENDINGS[sign] and re.search(sign, text := path.read_text(encoding="utf-8"), re.MULTILINE):
                yield str(path.relative_to(CHECKOUT)), text


def cases(sign: str) -> pytest.MarkDecorator:
    """Return a mark that repeats a test for each block and file."""
    found = dict(find_files(sign))
    return pytest.mark.parametrize("text", found.values(), ids=found.keys())


def check(*command: str | Path, **environment: str) -> None:
    """Run a program that checks a file; skip the test if it is not installed."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert (done.returncode, done.stderr) == (0, "")


def write_root(root: Path, programs: Sequence[str]) -> None:
    """Write a system with the units of this one, and with these programs."""
    for folder in ("usr/lib/systemd/system", "lib/systemd/system"):
        if (Path("/") / folder).is_dir():
            shutil.copytree(Path("/") / folder, root / folder, symlinks=True, dirs_exist_ok=True)
    for program in programs:
        file = root / program.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)


@cases(UNIT)
def test_systemd_accepts_unit_as_printed(text, tmp_path):
    write_root(tmp_path, re.findall(r"^ExecStart=(\S+)", text, re.MULTILINE))
    unit = tmp_path / "etc" / "systemd" / "system" / "musicsim.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(text, encoding="utf-8")
    check("systemd-analyze", "verify", "--man=no", f"--root={tmp_path}", unit.name)


@cases(DESKTOP)
def test_desktop_file_is_valid(text, tmp_path):
    (tmp_path / "musicsim.desktop").write_text(text, encoding="utf-8")
    check("desktop-file-validate", tmp_path / "musicsim.desktop")


def has_compose() -> bool:
    """Return whether docker has its plugin for compose files."""
    version = ["docker", "compose", "version"]
    return bool(shutil.which("docker")) and subprocess.run(version, capture_output=True, check=False).returncode == 0


@cases(COMPOSE)
def test_compose_file_is_valid(text, tmp_path):
    (tmp_path / "compose.yaml").write_text(text, encoding="utf-8")
    if not has_compose():
        pytest.skip("docker compose is not installed")
    check("docker", "compose", "--file", tmp_path / "compose.yaml", "config", "--quiet")
