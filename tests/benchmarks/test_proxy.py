"""nginx takes the configuration that docs/hosting.md describes for several processes."""

import shutil
import subprocess

import pytest

pytest.importorskip("psutil", reason="the extra bench is not installed")

from benchmarks._proxy import _NGINX, _configuration

nginx = next((found for name in _NGINX if (found := shutil.which(name))), None)


@pytest.mark.skipif(nginx is None, reason="nginx is not installed")
def test_nginx_takes_what_is_described(tmp_path):
    (tmp_path / "nginx.conf").write_text(_configuration(tmp_path, "127.0.0.1:8999", ["127.0.0.1:8501"]))
    checked = subprocess.run(
        [nginx, "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_all_processes_and_nothing_of_the_certificate_are_in_it(tmp_path):
    text = _configuration(tmp_path, "127.0.0.1:8999", ["127.0.0.1:1", "127.0.0.1:2"])
    assert "server 127.0.0.1:1;\n    server 127.0.0.1:2;\n}" in text
    assert "8501" not in text
    assert "ssl" not in text
