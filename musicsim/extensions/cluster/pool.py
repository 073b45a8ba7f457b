"""Tasks on the workers of a Dask cluster.

The client sends tasks in batches of some seconds of work, at most two for each thread of the workers. So memory is
bounded for any number of tasks. A worker of Dask gives its batch to a worker process of ours
(:mod:`musicsim.library.processes.workers`), which has the same limits per file as on one machine.

Dask repeats the tasks of a worker that dies. This client repeats those of a scheduler that dies, when it is back. A
batch that has killed too many workers is repeated at the end, file by file.
"""

import logging
import multiprocessing
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Self, TypeVar

from musicsim import __version__
from musicsim.errors import LibraryError
from musicsim.extensions.cluster.address import check_address, is_encrypted, is_on_this_machine, n_own
from musicsim.library.processes.workers import Crew, Limits, WorkerDied

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

_log = logging.getLogger(__name__)

T = TypeVar("T")

_AHEAD = 2  # batches a thread of the cluster: one at work, one to go on with
_BATCH_S = 2.0  # of work: much longer than a message takes
_MAX_BATCH = 32
_TICK_S = 0.5
_COUNT_EVERY_S = 2.0
_CONNECT_S = 10.0
_FETCH_S = 120.0
_GONE_S = 600.0  # then a scheduler that has gone is not waited for any longer
_RETRIES = 2  # of a batch that could not be begun, on whatever worker
UNTRUSTED = (
    "this cluster is on another machine and is not trusted. Dask exchanges pickles, so whoever controls the scheduler "
    "can run code on this machine. Use tls:// with certificates of your own, or trust the address: by --trust-cluster, "
    "by MUSICSIM_TRUST_CLUSTER=1 next to MUSICSIM_CLUSTER, or in the settings on the Library page."
)
"""Message on a cluster to which the owner of this machine has not consented."""
_CERTIFICATES = (
    "Set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__CLIENT__CERT and ...__CLIENT__KEY, or the same in "
    "~/.config/dask/distributed.yaml (docs/scale.md)."
)
_IDLE_S = 30.0  # then a worker process that was left on a cluster ends


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Workers of a cluster at one moment."""

    address: str
    dashboard: str | None  # address of the scheduler's page
    n_workers: int
    n_threads: int
    memory_bytes: int  # limit of its workers; 0 without one

    @property
    def words(self) -> str:
        """The same in a line."""
        memory = f", {self.memory_bytes / 1e9:.1f} GB" if self.memory_bytes else ""
        counts = {"worker": self.n_workers, "thread": self.n_threads}
        words = ", ".join(f"{n:,} {what}{'s' * (n != 1)}" for what, n in counts.items())
        return f"{self.address}: {words}{memory}"


@contextmanager
def open_cluster(address: str, *, is_trusted: bool = False) -> "Iterator[ClusterPool]":
    """Open the cluster at an address.

    Parameters
    ----------
    address : str
        ``local:N``, or the address of a scheduler.
    is_trusted : bool
        Connect to another machine without TLS. Dask exchanges pickles: whoever controls the scheduler, or the network
        on the way, can run code on this machine. The owner of this machine decides, never a library.

    Raises
    ------
    LibraryError
        If the address is malformed or not trusted, nobody answers there, TLS has no certificates, or Dask is not
        installed.
    """
    try:
        address = check_address(address)
    except ValueError as error:
        raise LibraryError(str(error)) from error
    if not (is_trusted or is_encrypted(address) or is_on_this_machine(address)):
        raise LibraryError(f"{address}: {UNTRUSTED}")
    if find_spec("distributed") is None:
        raise LibraryError(f"{address}: a cluster needs Dask. Install it: pip install 'musicsim[cluster]'.")
    if is_encrypted(address):
        _check_certificates(address)
    n_workers = n_own(address)
    with ClusterPool.at_home(n_workers) if n_workers else ClusterPool(address) as pool:
        yield pool


def _check_certificates(address: str) -> None:
    """Raise LibraryError unless the owner of this machine has set a certificate authority of their own for Dask.

    Without it ``tls://`` fails later, and ``wss://`` trusts any public authority.
    """
    from distributed import Security

    try:
        security: Any = Security()  # sets its attributes by name
        certificates = security.tls_ca_file and security.tls_client_cert
        security.get_connection_args("client")  # reads the files
    except (OSError, TypeError, ValueError) as error:  # errors of TLS are of the system's kind
        raise LibraryError(
            f"{address}: the certificates that Dask is set to use cannot be read ({error}). {_CERTIFICATES}"
        ) from error
    if not certificates:
        raise LibraryError(f"{address}: TLS needs certificates of your own. {_CERTIFICATES}")


class ClusterPool:
    """A client of the scheduler at an address.

    Raises LibraryError if nobody answers there.
    """

    shares_disk = False

    def __init__(self, address: str, cluster: "LocalCluster | None" = None) -> None:
        self.address, self._cluster = address, cluster
        self._client = self._connect()
        self._n_threads, self._counted = 0, 0.0

    @classmethod
    def at_home(cls, n_workers: int) -> Self:
        """A cluster of this process's own, on this machine, with one thread a worker."""
        from distributed import LocalCluster

        cluster = LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"allowed_failures": 0},
            silence_logs=logging.ERROR,
        )
        return cls(cluster.scheduler_address, cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take leave; a cluster of our own ends."""
        with suppress(OSError, TimeoutError):
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def state(self) -> ClusterState:
        """State of the cluster."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        try:
            dashboard = self._client.dashboard_link
        except KeyError:  # it has none
            dashboard = None
        return ClusterState(
            self.address,
            dashboard,
            len(workers),
            sum(worker["nthreads"] for worker in workers),
            sum(worker["memory_limit"] or 0 for worker in workers),
        )

    def outcomes(
        self, function: Callable[[T], Any], tasks: Iterable[T], *, limits: Limits, preload: tuple[str, ...] = ()
    ) -> Generator[tuple[T, Any] | None, None, None]:
        """See :class:`musicsim.library.processes.pools.Pool`.

        Raises LibraryError if the scheduler has gone for ten minutes, or workers cannot do such work at all.
        """
        work = _Work(uuid.uuid4().hex, function, limits, preload, __version__)
        suspects: list[T] = []
        for item in self._round(work, tasks, _MAX_BATCH, None):
            if item is not None and isinstance(item[1], _Killed):
                suspects.append(item[0])
            else:
                yield item
        # one at a time: workers die with all that was at work on them
        for item in self._round(work, suspects, 1, 1):
            yield item if item is None or not isinstance(item[1], _Killed) else (item[0], WorkerDied(None))

    def _round(
        self, work: "_Work", tasks: Iterable[T], max_batch: int, max_pending: int | None
    ) -> Generator[tuple[T, Any] | None, None, None]:
        """Do every task, again and again where it got lost; those of a batch that kills have :class:`_Killed`."""
        shared: Future | None = None  # the work, which each worker is given once
        waiting = iter(tasks)
        pending: dict[Future, list[T]] = {}
        lost: deque[list[T]] = deque()
        finished: SimpleQueue[Future] = SimpleQueue()
        size = 1
        try:
            while True:
                yield from self._found_again(pending, lost)
                if shared is not None and shared.client is not self._client:
                    shared = None
                while len(pending) < (max_pending or self._room()):
                    batch = lost.popleft() if lost else list(islice(waiting, size))
                    if not batch:
                        break
                    shared = shared or self._share(work)
                    if shared is None:
                        lost.appendleft(batch)
                        break
                    key = f"musicsim-{uuid.uuid4().hex}"
                    future = self._client.submit(_do, shared, batch, key=key, retries=_RETRIES)
                    pending[future] = batch
                    future.add_done_callback(finished.put)
                if not pending and not lost:
                    return
                try:
                    future = finished.get(timeout=_TICK_S)
                except Empty:
                    yield None
                    continue
                if future not in pending:  # of the scheduler before
                    continue
                batch = pending.pop(future)
                done = self._take(future)
                if done is None:
                    lost.append(batch)
                    shared = None  # it may be what got lost
                    continue
                size = min(max(1, round(_BATCH_S * len(batch) / max(done.seconds, 1e-3))), 2 * size, max_batch)
                yield from (
                    zip(batch, done.results, strict=True) if done.results else ((task, _Killed()) for task in batch)
                )
        finally:
            for future in pending:
                future.release()

    def _share(self, work: "_Work") -> "Future | None":
        """Send the work to every worker; None without any worker."""
        if self._client.status != "running" or not self._client.nthreads():
            return None
        try:
            return self._client.scatter(work, broadcast=True, hash=False, timeout=_CONNECT_S)
        except (OSError, TimeoutError, CancelledError):
            return None

    def _room(self) -> int:
        """How many batches may be on their way."""
        if time.monotonic() - self._counted > _COUNT_EVERY_S and self._client.status == "running":
            with suppress(OSError, TimeoutError):
                self._n_threads = sum(self._client.nthreads().values())
            self._counted = time.monotonic()
        return _AHEAD * max(1, self._n_threads)

    def _take(self, future: "Future") -> "_Done | None":
        """Return the results of a batch, which the cluster may forget; None if it got lost."""
        from distributed import KilledWorker

        try:
            if future.status == "error":
                error = future.exception(timeout=_FETCH_S)
                if isinstance(error, KilledWorker):
                    return _Done([], _BATCH_S)
                raise LibraryError(
                    f"{self.address}: its workers cannot do the work ({error}). Install the same version of musicsim "
                    f"({__version__}) on all of them, and see that they have memory to spare."
                )
            if future.status == "finished":
                return future.result(timeout=_FETCH_S)
        except (OSError, TimeoutError, CancelledError) as error:
            _log.warning("a batch got lost between cluster and client: %s", error)
        finally:
            future.release()
        return None

    def _found_again(self, pending: "dict[Future, list[T]]", lost: deque[list[T]]) -> Iterator[None]:
        """Wait until there is a scheduler; what the one before knew is lost. Its client tries for a while by itself."""
        if self._client.status not in ("closing", "closed"):
            return
        _log.warning("the scheduler has gone; waiting for it")
        lost.extend(pending.values())
        pending.clear()
        given_up = time.monotonic() + _GONE_S
        while True:
            yield None
            try:
                self._client = self._connect()
            except LibraryError:
                if time.monotonic() > given_up:
                    raise
            else:
                return

    def _connect(self) -> "Client":
        from distributed import Client

        try:
            return Client(self.address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise LibraryError(
                f"{self.address}: no Dask scheduler answers there. Start one (dask scheduler), or check the address."
            ) from error


class _Killed:
    """Instead of the result of a task: its batch has cost the cluster too many workers."""


# --- on a worker of the cluster -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Done:
    """Results of a batch."""

    results: list[Any]  # of each task; empty if it was not done
    seconds: float


@dataclass(frozen=True, slots=True)
class _Work:
    """The work on every task."""

    name: str  # which no other work has
    function: Callable[[Any], Any]
    limits: Limits
    preload: tuple[str, ...]
    version: str  # of the client


def _do(work: _Work, tasks: list[Any]) -> _Done:
    """Do a batch."""
    if work.version != __version__:
        raise LibraryError(f"a worker has version {__version__}")
    started = time.perf_counter()
    places = {id(task): place for place, task in enumerate(tasks)}
    results: list[Any] = [None] * len(tasks)
    crew = _crews.take(work)
    try:
        for item in crew.outcomes(tasks):
            if item is not None:
                results[places[id(item[0])]] = item[1]
    except BaseException:
        crew.close()
        raise
    _crews.give_back(work.name, crew)
    return _Done(results, time.perf_counter() - started)


class _Crews:
    """The worker processes of a worker of Dask: one for each of its threads, kept for the next batch."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Crew[Any]]] = {}  # by the name of their work
        self._lock = threading.Lock()

    def take(self, work: _Work) -> Crew[Any]:
        with self._lock:
            idle = self._idle.get(work.name)
            if idle:
                return idle.pop()
        # workers of Dask are daemons of their nanny, which are refused children: ours end with the pipe to them
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        # Dask's, against what its own workers hold: analysing would give memory back and take it again all the time
        os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
        return Crew(work.function, work.limits, work.preload, 1)

    def give_back(self, name: str, crew: Crew[Any]) -> None:
        with self._lock:
            self._idle.setdefault(name, []).append(crew)
        timer = threading.Timer(_IDLE_S, self._end, (name, crew, crew.n_given))
        timer.daemon = True
        timer.start()

    def _end(self, name: str, crew: Crew[Any], n_given: int) -> None:
        """Close a crew that has been given nothing since."""
        with self._lock:
            idle = self._idle.get(name, [])
            if crew not in idle or crew.n_given != n_given:
                return
            idle.remove(crew)
            if not idle:
                del self._idle[name]
        crew.close()


_crews = _Crews()
