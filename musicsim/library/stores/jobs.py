"""The state of background jobs, written by the job's process and read by whoever watches."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import schema
from musicsim.library.db.database import Tables, Write

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

    @property
    def is_active(self) -> bool:
        """Whether it still has work to do."""
        return self.state in ACTIVE_STATES


class JobStore(Tables):
    """Jobs of one library. Progress of a job does not count as a change of the library."""

    def __init__(self, folder: Path, engine: sa.Engine, write: Write) -> None:
        super().__init__(engine, write)
        self.folder = folder

    def log_path(self, job_id: int) -> Path:
        """Where the job's process writes what it has to say."""
        return self.folder / f"{job_id}.log"

    def add_trace(self, job_id: int, point: Mapping[str, Any]) -> None:
        """Add a point to what a job draws while it works; JSON values."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._trace_path(job_id).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(dict(point)) + "\n")

    def trace(self, job_id: int) -> list[dict[str, Any]]:
        """The points that a job has drawn so far."""
        try:
            lines = self._trace_path(job_id).read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]  # a line is there once its end is

    def _trace_path(self, job_id: int) -> Path:
        return self.folder / f"{job_id}.jsonl"

    def forget_files(self, job_id: int) -> None:
        """Delete what a job of long ago has written."""
        for path in (self.log_path(job_id), self._trace_path(job_id)):
            path.unlink(missing_ok=True)

    def create(self, kind: str, arguments: Mapping[str, Any]) -> int:
        """Enter a job that waits for its process."""
        now = time.time()
        with self._write() as connection:
            row = {"kind": kind, "arguments": dict(arguments), "created_at": now, "updated_at": now}
            result = connection.execute(schema.jobs.insert().values(**row, state="waiting"))
        return int(result.inserted_primary_key[0])  # type: ignore[index]

    def update(self, job_id: int, **values: Any) -> None:
        """Change fields of a job; the time of the change is kept too."""
        with self._write() as connection:
            which = schema.jobs.update().where(schema.jobs.c.id == job_id)
            connection.execute(which.values(**values, updated_at=time.time()))

    def get(self, job_id: int) -> Job:
        """One job. Raises NotFoundError if there is none."""
        row = next(self._rows(sa.select(schema.jobs).where(schema.jobs.c.id == job_id)), None)
        if row is None:
            raise NotFoundError(f"there is no job {job_id} in this library.")
        return Job(**row._mapping)

    def recent(self, limit: int = 20) -> list[Job]:
        """The latest jobs, newest first."""
        query = sa.select(schema.jobs).order_by(schema.jobs.c.id.desc()).limit(limit)
        return [Job(**row._mapping) for row in self._rows(query)]
