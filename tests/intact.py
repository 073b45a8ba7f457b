"""Forbidden actions for visitors of a public demonstration: changing files, starting programs, connecting elsewhere."""

import hashlib
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest


def content(folder: Path) -> dict[str, str]:
    """Return digests of all files below a folder, except those with which SQLite coordinates readers and writers."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not (path.name.endswith("-shm") or (path.name.endswith("-wal") and not path.stat().st_size))
    }


class Watch:
    """A record of changes below a folder, started programs, and connections opened in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.started: list[object] = []
        started = self.started

        class Popen(subprocess.Popen):  # type: ignore[type-arg]
            def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
                super().__init__(args, *rest, **options)
                started.append(args)

        class Socket(socket.socket):
            def connect(self, address: Any) -> None:
                super().connect(address)
                if self.family != socket.AF_UNIX:
                    started.append(address)

        monkeypatch.setattr(subprocess, "Popen", Popen)
        monkeypatch.setattr(socket, "socket", Socket)
        self._before = content(folder)

    def check(self) -> None:
        """Assert that nothing has changed or started."""
        now = content(self.folder)
        assert not self.started, self.started
        changed = {name for name in now.keys() | self._before.keys() if now.get(name) != self._before.get(name)}
        assert not changed, changed
