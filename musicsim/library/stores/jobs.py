"""State of background jobs, written by the job's process and read by others."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from musicsim.addresses import explain_refusal, has_user
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library.db import Tables, Write, schema

ACTIVE_STATES = ("waiting", "running", "paused")


@dataclass(frozen=True, slots=True)
class Job:
    """A background job. States: waiting, running, paused, done, failed, cancelled, interrupted."""

    id: int
    kind: str
    arguments: dict[str, Any]
    state: str
    message: str
    done: int
    total: int
    failed: int
    seconds_left: float | None
    songs_per_second: float | None
    cancel_requested: bool
    pid: int | None
    created_at: float
    updated_at: float
    pause_requested: bool = False
    finish_requested: bool = False
    share: float = 0.0  # of the work that is done, from 0 to 1; analyzing the files is only part of it

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_STATES


class JobStore(Tables):
    """Jobs of one library. Their progress does not change the library's revision."""

    def __init__(self, folder: Path, engine: sa.Engine, write: Write) -> None:
        super().__init__(engine, write)
        self.folder = folder

    def log_path(self, job_id: int) -> Path:
        return self.folder / f"{job_id}.log"

    def add_trace(self, job_id: int, point: Mapping[str, Any]) -> None:
        """Append a point (JSON values) to a job's progress plot."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._trace_path(job_id).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(dict(point)) + "\n")

    def trace(self, job_id: int) -> list[dict[str, Any]]:
        try:
            lines = self._trace_path(job_id).read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]  # the last line may be incomplete

    def _trace_path(self, job_id: int) -> Path:
        return self.folder / f"{job_id}.jsonl"

    def forget_files(self, job_id: int) -> None:
        for path in (self.log_path(job_id), self._trace_path(job_id)):
            path.unlink(missing_ok=True)

    def create(
        self, kind: str, arguments: Mapping[str, Any], pid: int | None = None, *, is_single: bool = False
    ) -> int:
        """Store a new job in the state "waiting" and return its id; `pid` is the process that will run it, if known.

        With `is_single`, nothing is stored if an equal job is waiting or running, and its id is returned.
        Raises LibraryError, and stores nothing, if the arguments contain an address with a password.
        """
        for value in arguments.values():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str) and has_user(text):
                    raise LibraryError(explain_refusal(text))
        now = time.time()
        times = {"created_at": now, "updated_at": now}
        row = {"kind": kind, "arguments": dict(arguments), "state": "waiting", "pid": pid, **times}
        with self._write() as connection:
            if is_single and (equal := _find_equal(connection, kind, arguments)) is not None:
                return equal
            result = connection.execute(schema.jobs.insert().values(**row))
        return int(result.inserted_primary_key[0])  # type: ignore[index]

    def update(self, job_id: int, **values: Any) -> None:
        """Change fields of a job, and set the time of its last update."""
        statement = schema.jobs.update().where(schema.jobs.c.id == job_id)
        self._execute(statement.values(**values, updated_at=time.time()))

    def claim(self, job_id: int, **values: Any) -> bool:
        """Change fields of a job that is waiting for a process; return False if it already has one, or has ended."""
        c = schema.jobs.c
        is_free = (c.id == job_id) & (c.state == "waiting") & c.pid.is_(None)
        return self._execute(schema.jobs.update().where(is_free).values(**values, updated_at=time.time())) > 0

    def get(self, job_id: int) -> Job:
        """Return a job. Raises NotFoundError if it does not exist."""
        row = self._row(sa.select(schema.jobs).where(schema.jobs.c.id == job_id))
        if row is None:
            raise NotFoundError(f"this library does not have a job {job_id}.")
        return Job(**row._mapping)

    def active(self) -> list[Job]:
        """Return the jobs that have not ended, oldest first."""
        query = sa.select(schema.jobs).where(schema.jobs.c.state.in_(ACTIVE_STATES)).order_by(schema.jobs.c.id)
        return [Job(**row._mapping) for row in self._rows(query)]

    def recent(self, limit: int = 20, kind: str | None = None) -> list[Job]:
        """Return the last jobs, newest first; with `kind`, only those of this kind."""
        query = sa.select(schema.jobs).order_by(schema.jobs.c.id.desc()).limit(limit)
        query = query if kind is None else query.where(schema.jobs.c.kind == kind)
        return [Job(**row._mapping) for row in self._rows(query)]


def _find_equal(connection: sa.Connection, kind: str, arguments: Mapping[str, Any]) -> int | None:
    """Return the id of a job with the same arguments that has not ended and will not be canceled."""
    c = schema.jobs.c
    query = sa.select(c.id, c.arguments).where(c.kind == kind, c.state.in_(ACTIVE_STATES), ~c.cancel_requested)
    wanted = json.loads(json.dumps(dict(arguments)))
    return next((int(job_id) for job_id, stored in connection.execute(query.order_by(c.id)) if stored == wanted), None)
