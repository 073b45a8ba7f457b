"""nginx in front of several processes of the app, with the configuration of docs/host/proxy.md."""

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

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


def build_configuration(folder: Path, address: str, processes: Sequence[str]) -> str:
    """Return the documented configuration, with this proxy address and without its certificate."""
    servers, upstream = read_configurations()
    text = f"{upstream}{servers}"
    text = re.sub(r"server \{\s+listen 80;.*?\n\}\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *ssl_.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^ *server 127\.0\.0\.1:\d+;\n", "", text, flags=re.MULTILINE)
    listed = "".join(f"    server {process};\n" for process in processes)
    for found, put in (
        ("hash $visitor consistent;\n", f"hash $visitor consistent;\n{listed}"),
        ("listen 443 ssl http2;", f"listen {address};"),
        ("server_name music.example;", "server_name _;"),
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


@contextmanager
def balanced(
    command: Sequence[str], n: int, log: IO[bytes] | None = None
) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start `n` servers behind nginx; yield the address and the server processes.

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
            file.write_text(build_configuration(Path(folder), f"127.0.0.1:{port}", processes))

        with served([nginx, "-p", folder, "-c", str(file)], before=configure) as (address, _):
            yield address, [process for _, process in servers]
