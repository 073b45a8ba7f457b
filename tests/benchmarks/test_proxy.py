"""nginx and Caddy take the configurations that docs/host/proxy.md describes."""

import os
import re
import shutil
import subprocess

import pytest

pytest.importorskip("psutil", reason="the extra bench is not installed")

from benchmarks.support.proxy import HOSTING_PAGE, NGINX, build_configuration

nginx = next((found for name in NGINX if (found := shutil.which(name))), None)


@pytest.mark.skipif(nginx is None, reason="nginx is not installed")
def test_nginx_accepts_documented_configuration(tmp_path):
    (tmp_path / "nginx.conf").write_text(build_configuration(tmp_path, "127.0.0.1:8999", ["127.0.0.1:8501"]))
    checked = subprocess.run(
        [nginx, "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


def test_configuration_lists_processes_without_certificate(tmp_path):
    text = build_configuration(tmp_path, "127.0.0.1:8999", ["127.0.0.1:1", "127.0.0.1:2"])
    assert "server 127.0.0.1:1;\n    server 127.0.0.1:2;\n}" in text
    assert "8501" not in text
    assert "ssl" not in text


@pytest.mark.skipif(shutil.which("caddy") is None, reason="Caddy is not installed")
def test_caddy_accepts_documented_configuration(tmp_path):
    (text,) = re.findall(r"```caddyfile\n(.*?)```", HOSTING_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "Caddyfile").write_text(text)
    checked = subprocess.run(
        ["caddy", "validate", "--config", tmp_path / "Caddyfile", "--adapter", "caddyfile"],
        env=os.environ | {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
