"""The files that other programs read are right: the workflow, the container, its compose file, and systemd's unit."""

import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.pythons import VERSIONS

CHECKOUT = Path(__file__).parents[1]
WORKFLOW = yaml.safe_load((CHECKOUT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
COMMANDS = [line for step in STEPS for line in step.get("run", "").splitlines()]
DOCKERFILE = (CHECKOUT / "docker/Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((CHECKOUT / "docker/compose.yaml").read_text(encoding="utf-8"))
UNIT = CHECKOUT / "docker/musicsim.service"
SYSTEM_UNITS = Path("/usr/lib/systemd/system")
TARGET = re.compile(r"\bmake ([a-z-]+)")
systemd_analyze = shutil.which("systemd-analyze")


def list_targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):(?!=)", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_workflow_runs_existing_targets_modules_and_tests():
    named = {target for command in COMMANDS for target in TARGET.findall(command)}
    assert {"install", "test", "dist"} <= named <= list_targets()
    for command in COMMANDS:
        words = shlex.split(command)
        if "-m" in words:
            assert find_spec(words[words.index("-m") + 1]), command
        assert [
            word for word in words if word.startswith(("tests/", "requirements")) and not (CHECKOUT / word).exists()
        ] == []


def test_workflow_tries_every_python_on_linux_and_one_on_other_systems():
    matrix = WORKFLOW["jobs"]["make"]["strategy"]["matrix"]
    assert tuple(matrix["python"]) == VERSIONS
    systems = [*matrix["os"], *(row["os"] for row in matrix["include"]), WORKFLOW["jobs"]["without-make"]["runs-on"]]
    assert [re.sub(r"-\d[\d.]*", "", system) for system in systems] == ["ubuntu", "ubuntu-arm", "macos", "windows"]


def test_workflow_uses_actions_of_known_versions_and_only_reads():
    actions = [step["uses"] for step in STEPS if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"actions/[\w-]+@v\d+", action)] == []
    assert WORKFLOW["permissions"] == {"contents": "read"}


def test_table_without_make_names_existing_targets():
    page = (CHECKOUT / "docs/host/install.md").read_text(encoding="utf-8")
    table = page.partition("### Without make")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `make ([a-z-]+)` \|", table, re.MULTILINE)
    assert {"app", "dist", "install", "test"} <= set(rows) <= list_targets()


def test_image_gets_locked_packages_and_runs_without_rights():
    installs = [line for line in DOCKERFILE.splitlines() if "pip install" in line]
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation" in line for line in installs)
    final = DOCKERFILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", final, re.MULTILINE)
    assert "warm-up" in final
    assert "HEALTHCHECK" in final


def test_context_of_the_image_has_what_setup_reads():
    lines = (CHECKOUT / "docker/Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert {
        "musicsim",
        "beetsplug",
        "pyproject.toml",
        "requirements.txt",
        "setup.py",
        "README.md",
        "LICENSE",
    } == allowed
    assert [name for name in allowed if not (CHECKOUT / name).exists()] == []


def test_compose_file_builds_the_image_and_mounts_nothing_to_write_but_the_cache():
    (service,) = COMPOSE["services"].values()
    folder = (CHECKOUT / "docker" / service["build"]["context"]).resolve()
    assert (folder / service["build"]["dockerfile"]).samefile(CHECKOUT / "docker/Dockerfile")
    assert [volume for volume in service["volumes"] if not volume.endswith(":ro")] == ["cache:/cache"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    (network,) = COMPOSE["networks"].values()
    assert service["environment"]["FORWARDED_ALLOW_IPS"] == network["ipam"]["config"][0]["gateway"]


@pytest.mark.skipif(systemd_analyze is None or not SYSTEM_UNITS.is_dir(), reason="this system has no systemd")
@pytest.mark.parametrize("fault", ["", "ProtectHome"])
def test_systemd_takes_the_unit(tmp_path, fault):
    text = UNIT.read_text(encoding="utf-8")
    (program,) = re.findall(r"^ExecStart=(\S+)", text, re.MULTILINE)
    installed = tmp_path / program.lstrip("/")
    installed.parent.mkdir(parents=True)
    installed.touch(mode=0o755)
    shutil.copytree(SYSTEM_UNITS, tmp_path / SYSTEM_UNITS.relative_to("/"), symlinks=True)
    unit = tmp_path / "etc/systemd/system" / UNIT.name
    unit.parent.mkdir(parents=True)
    unit.write_text(text.replace(f"{fault}=", "NoSuchKey=") if fault else text)
    command = [systemd_analyze, "verify", "--man=no", f"--root={tmp_path}", UNIT.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if fault:
        assert "NoSuchKey" in done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "")
