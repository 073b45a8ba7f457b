"""nginx in front of several processes of the app, with the configuration of docs/host/proxy.md.

Addresses, the paths of the certificate and one limit are replaced; no line is left out.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO
from unittest import mock

import psutil

from benchmarks.support.app import served

__all__ = ["balanced"]

HOSTING_PAGE = Path(__file__).parents[2] / "docs" / "host" / "proxy.md"
NGINX = "nginx", "/usr/sbin/nginx"
_FRAME = """daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{servers}
}}
"""


def read_configurations() -> tuple[str, str]:
    """Return the documented servers, and what is inserted before them for several processes."""
    servers, upstream = re.findall(r"```nginx\n(.*?)```", HOSTING_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return servers, upstream


def build_configuration(folder: Path, port: int, processes: Sequence[str]) -> str:
    """Return the documented configuration for this port, with a certificate in the folder."""
    servers, upstream = read_configurations()
    text = f"{upstream}{servers}"
    listed = "".join(f"    server {process};\n" for process in processes)
    text = re.sub(r"(^ *server 127\.0\.0\.1:\d+;\n)+", listed, text, flags=re.MULTILINE)
    for found, put in (
        ("listen 80;", f"listen unix:{folder}/http;"),
        ("listen 443 ssl http2;", f"listen 127.0.0.1:{port} ssl http2;"),
        ("/etc/letsencrypt/live/music.example", str(folder)),
        ("server_name music.example;", "server_name 127.0.0.1;"),
        # all simulated visitors are on this machine: they say their address themselves
        ("limit_conn musicsim_pages 20;", "limit_conn musicsim_pages 1000;"),
        ("X-Forwarded-For $remote_addr;", "X-Forwarded-For $http_x_forwarded_for;"),
        # the proxy has its own port, which browsers send
        ("proxy_set_header Host $host;", "proxy_set_header Host $http_host;"),
        ("proxy_pass http://127.0.0.1:8501;", "proxy_pass http://musicsim;"),
    ):
        if found not in text:
            raise RuntimeError(f"{HOSTING_PAGE.name}: its configuration of nginx has no {found.strip()!r} any more")
        text = text.replace(found, put)
    return _FRAME.format(folder=folder, servers=text)


def write_certificate(folder: Path) -> Path:
    """Write a certificate of this machine and its key, as Let's Encrypt names them; return the certificate."""
    certificate = folder / "fullchain.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=music.example",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:music.example",
         "-keyout", folder / "privkey.pem", "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate


@contextmanager
def balanced(
    command: Sequence[str], n: int, log: IO[bytes] | None = None
) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start `n` servers behind nginx; yield the address, whose certificate Python trusts, and the server processes.

    `command` starts one of them, and `log` takes their output, as in :func:`served`.
    """
    nginx = next((found for name in NGINX if (found := shutil.which(name))), None)
    if nginx is None:
        raise RuntimeError("nginx is not installed: it stands before the processes")
    with ExitStack() as held, tempfile.TemporaryDirectory(prefix="musicsim-nginx-") as folder:
        Path(folder).chmod(0o755)  # nginx started by root runs as another user
        servers = [held.enter_context(served(command, log=log)) for _ in range(n)]
        file = Path(folder) / "nginx.conf"

        def configure(port: int) -> None:
            processes = [address.removeprefix("http://") for address, _ in servers]
            file.write_text(build_configuration(Path(folder), port, processes))

        held.enter_context(mock.patch.dict(os.environ, SSL_CERT_FILE=str(write_certificate(Path(folder)))))
        with served([nginx, "-p", folder, "-c", str(file)], before=configure, scheme="https") as (address, _):
            yield address, [process for _, process in servers]
