"""Commands that are interrupted at each change of the disk in turn, by a crash or by a disk that is full from then on.

An audit hook counts the changes. The commands are forked from a separate process that has loaded their imports.
"""

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, Self

import sqlalchemy as sa

from tests.children import command, finish, load
from tests.waiting import PATIENCE_S

__all__ = ["CRASHED", "FAULTS", "Fault", "Interruption", "interrupt_each_change"]

Fault = Literal["crash", "full disk"]
FAULTS: tuple[Fault, ...] = ("crash", "full disk")
CRASHED = 86  # exit code
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEEDS_ROOM = frozenset({"open", "os.link", "os.mkdir", "os.rename", "os.symlink"})
_CHANGES = _NEEDS_ROOM | {"os.remove", "os.rmdir"}


@dataclass(frozen=True)
class Interruption:
    """The end of an interrupted command."""

    number: int  # of the change before which it was interrupted, from 0
    code: int | None
    said: str
    run_again: Callable[[], "Interruption"]  # the same command, without an interruption


def interrupt_each_change(
    fault: Fault, prepare: Callable[[], object], *arguments: object, library: Path, within: Path
) -> Iterator[Interruption]:
    """Interrupt a command before the first change of the folder `within`, then before the second, and so on.

    `prepare` is called before each command. Ends after the first command that completes without an interruption.
    """
    with _Forks() as forks:
        request = {"arguments": [*map(str, arguments)], "library": str(library), "within": os.path.realpath(within)}

        def run(number: int, **fault: str) -> tuple[bool, Interruption]:
            ended = forks.run(request | {"number": number} | fault)
            is_reached = ended.pop("is_reached")
            return is_reached, Interruption(number, run_again=lambda: run(number)[1], **ended)

        for number in count():
            prepare()
            is_reached, interruption = run(number, fault=fault)
            if not is_reached:
                assert number, "the command changes nothing"
                return
            yield interruption


class _Forks:
    """The process from which commands are forked, because this one has threads."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()  # it ends by itself
        self._process.wait(PATIENCE_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def _serve() -> None:
    load()
    os.sync = os.fsync = lambda *_: None  # a process that ends loses nothing that it has written
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        call = command(*request["arguments"], library=Path(request["library"]))
        reader, writer = os.pipe()

        def interrupted(call=call, request=request, writer=writer) -> None:
            if "fault" in request:
                _Interrupter(request["fault"], request["number"], request["within"], writer).begin()
            call()

        said = Path(request["within"] + ".said")
        ended = asdict(finish(interrupted, said, PATIENCE_S))
        os.close(writer)
        with os.fdopen(reader, "rb") as marks:
            is_reached = bool(marks.read())
        said.unlink()
        print(json.dumps({"code": ended["code"], "said": ended["said"], "is_reached": is_reached}), file=answers)
        answers.flush()


class _Interrupter:
    def __init__(self, fault: Fault, number: int, within: str, marks: int) -> None:
        self._fault, self._left, self._within, self._marks = fault, number, within, marks
        self._counted = _CHANGES if fault == "crash" else _NEEDS_ROOM

    def begin(self) -> None:
        sys.addaudithook(self._audit)
        if self._fault == "crash":
            sa.event.listen(sa.Engine, "commit", lambda _: self._count(self._within))

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in self._counted or (event == "open" and not args[2] & _WRITES):
            return
        is_between = event in ("os.link", "os.rename", "os.symlink")  # the arguments begin with two paths
        path = self._locate(args[is_between], args[-1] if event.startswith("os.") else -1)
        if path is not None and (path + os.sep).startswith(self._within + os.sep):
            self._count(path)

    def _locate(self, path: object, folder: object) -> str | None:
        """Return the absolute path; `folder` is the open folder to which it is relative, or -1."""
        if not isinstance(path, str | bytes | os.PathLike):
            return None  # an open file
        at = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else os.curdir
        parent, name = os.path.split(os.path.join(at, os.fsdecode(path)))
        return os.path.join(os.path.realpath(parent), name)

    def _count(self, path: str) -> None:
        self._left -= 1
        if self._left >= 0:
            return
        os.write(self._marks, b".")
        if self._fault == "crash":
            os._exit(CRASHED)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


if __name__ == "__main__":
    _serve()
