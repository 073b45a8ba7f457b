"""nginx and Caddy take the configurations that docs/host/proxy.md describes."""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="the extra bench is not installed")

from benchmarks.support.proxy import (
    HOSTING_PAGE,
    NGINX,
    balanced,
    build_configuration,
    read_configurations,
    write_certificate,
)
from musicsim.api.pages import pages_per_address

nginx = next((found for name in NGINX if (found := shutil.which(name))), None)
ISOLATED = ("unshare", "--user", "--map-root-user", "--mount", "--net", "--")
ACCOUNTS = ("root", "www-data", "nginx")
ANSWER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers.get("X-Forwarded-Proto", "").encode())
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def can_isolate() -> bool:
    """Return whether a program can run with folders of its own at fixed paths, as nginx needs for a certificate."""
    if None in map(shutil.which, ("unshare", "openssl")) or not Path("/etc/nginx/nginx.conf").exists():
        return False
    mount = [*ISOLATED, "mount", "--bind", Path(__file__).parent, "/etc"]
    return subprocess.run(mount, capture_output=True, check=False).returncode == 0


@pytest.fixture
def root(tmp_path) -> Path:
    """Folders of an nginx as it is installed, with a certificate at the printed path."""
    etc = tmp_path / "etc"
    shutil.copytree("/etc/nginx", etc / "nginx", symlinks=True)
    for file, form in (("passwd", "{}:x:0:0::/:/bin/sh\n"), ("group", "{}:x:0:\n")):  # the only user that is mapped
        (etc / file).write_text("".join(map(form.format, ACCOUNTS)))
    certificate = etc / "letsencrypt" / "live" / "music.example"
    certificate.mkdir(parents=True)
    write_certificate(certificate)
    for folder in ("log/nginx", "run", "lib/nginx"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


@pytest.mark.skipif(nginx is None or not can_isolate(), reason="nginx is not installed, or cannot get its own folders")
@pytest.mark.parametrize("n_processes", [1, 2])
def test_nginx_loads_configuration_as_printed(root, n_processes):
    servers, upstream = read_configurations()
    if n_processes > 1:  # as the page tells
        servers = upstream + servers.replace("proxy_pass http://127.0.0.1:8501;", "proxy_pass http://musicsim;")
    (root / "etc" / "nginx" / "conf.d" / "musicsim.conf").write_text(servers)
    binds = {"etc": "/etc", "log": "/var/log", "run": "/run", "lib": "/var/lib"}
    mounts = " && ".join(f"mount --bind {root / folder} {place}" for folder, place in binds.items())
    checked = subprocess.run(
        [*ISOLATED, "sh", "-c", f"{mounts} && exec {nginx} -t"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert "test is successful" in checked.stderr


def test_nginx_limits_pages_before_app_does(monkeypatch):
    monkeypatch.delenv("MUSICSIM_PAGES_PER_ADDRESS", raising=False)
    servers, _ = read_configurations()
    (limit,) = re.findall(r"limit_conn musicsim_pages (\d+);", servers)
    assert int(limit) < pages_per_address()


@pytest.mark.skipif(None in (nginx, shutil.which("openssl")), reason="nginx or openssl is not installed")
def test_benchmark_reaches_processes_through_nginx_over_tls():
    command = [sys.executable, "-c", ANSWER, "{port}"]
    with balanced(command, 2) as (address, servers), urllib.request.urlopen(f"{address}/_stcore/stream") as answer:
        assert address.startswith("https://")
        assert answer.read() == b"https"
        assert len(servers) == 2


def test_benchmark_replaces_only_addresses_paths_and_a_limit(tmp_path):
    text = build_configuration(tmp_path, 8999, ["127.0.0.1:1", "127.0.0.1:2"])
    assert "server 127.0.0.1:1;\n    server 127.0.0.1:2;\n}" in text
    assert "8501" not in text
    documented = [line.partition("#")[0].strip() for block in read_configurations() for line in block.splitlines()]
    kept = [line.partition("#")[0].strip() for line in text.splitlines()]
    assert {line.partition(" ")[0] for line in documented if line not in kept} == {
        *("listen", "server_name", "ssl_certificate", "ssl_certificate_key", "limit_conn"),
        *("proxy_set_header", "proxy_pass", "server"),
    }


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
