"""Tasks on the workers of a Dask cluster.

The client sends tasks in batches of a few seconds of work, at most two batches per worker thread. If a worker dies,
Dask repeats its tasks. If the scheduler dies, the client repeats its tasks once the scheduler is back. A batch that has
killed too many workers is repeated at the end, one file at a time.
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
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from musicsim import __version__, extras
from musicsim.errors import LibraryError
from musicsim.extensions.cluster.address import check_address, is_encrypted, n_own, needs_trust
from musicsim.library import Crew, Limits, WorkerDied
from musicsim.wording import count

if TYPE_CHECKING:
    from distributed import Client, Future

_log = logging.getLogger(__name__)

T = TypeVar("T")

_AHEAD = 2  # number of batches per worker thread: one running, one waiting
_BATCH_S = 2.0  # seconds of work in a batch; sending a message takes much less
MAX_BATCH = 32  # tasks
_TICK_S = 0.5
_COUNT_EVERY_S = 2.0
CONNECT_S = 10.0
_FETCH_S = 120.0
_GONE_S = 600.0  # maximum seconds to wait until a lost scheduler is back
_RETRIES = 2  # number of retries of a batch that could not start on any worker
UNTRUSTED = (
    "this cluster is on a different machine and is not trusted. Dask exchanges pickles, so anyone who controls the "
    "scheduler can run code on this machine. Use tls:// with your own certificates, or trust the address: with "
    "--trust-cluster, with MUSICSIM_TRUST_CLUSTER=1 and MUSICSIM_CLUSTER, or under Connections on the Library page."
)
_CERTIFICATES = (
    "Set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, ...__CLIENT__CERT and ...__CLIENT__KEY, or the same options in "
    "~/.config/dask/distributed.yaml (docs/host/cluster.md)."
)
_IDLE_S = 30.0  # seconds after which an unused worker process on a cluster ends
_KILLED = object()  # result of the tasks in a batch that has killed too many workers


@dataclass(frozen=True, slots=True)
class ClusterState:
    address: str
    dashboard: str | None  # URL of the scheduler's page
    n_workers: int
    n_threads: int
    memory_bytes: int  # memory limit of all workers together; 0 if unlimited

    @property
    def summary(self) -> str:
        memory = f", {self.memory_bytes / 1e9:.1f} GB" if self.memory_bytes else ""
        return f"{self.address}: {count(self.n_workers, 'worker')}, {count(self.n_threads, 'thread')}{memory}"


@contextmanager
def open_cluster(address: str, *, is_trusted: bool = False) -> "Iterator[ClusterPool]":
    """Open the cluster at an address: ``local:N``, or a scheduler's address.

    `is_trusted` allows a connection to a different machine without TLS. Anyone who controls its scheduler or the
    network can then run code on this machine. Only this machine's owner may allow that, not a library.
    """
    try:
        address = check_address(address)
    except ValueError as error:
        raise LibraryError(str(error)) from error
    if needs_trust(address) and not is_trusted:
        raise LibraryError(f"{address}: {UNTRUSTED}")
    if find_spec("distributed") is None:
        raise LibraryError(f"{address}: a cluster needs Dask. Install it with: {extras.install_command('cluster')}")
    if is_encrypted(address):
        _check_certificates(address)
    n_workers = n_own(address)
    with (
        _local_scheduler(n_workers) if n_workers else nullcontext(address) as scheduler,
        ClusterPool(scheduler) as pool,
    ):
        yield pool


@contextmanager
def _local_scheduler(n_workers: int) -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"allowed_failures": 0},
        silence_logs=logging.ERROR,
    ) as cluster:
        yield cluster.scheduler_address


def _check_certificates(address: str) -> None:
    """Check that this machine has its own certificates for Dask; without them, ``wss://`` trusts any authority."""
    from distributed import Security

    try:
        security: Any = Security()  # Any, because Security sets its attributes dynamically
        certificates = security.tls_ca_file and security.tls_client_cert
        security.get_connection_args("client")  # reads the certificate files
    except (OSError, TypeError, ValueError) as error:  # SSLError is an OSError
        raise LibraryError(f"{address}: Dask cannot read its certificates ({error}). {_CERTIFICATES}") from error
    if not certificates:
        raise LibraryError(f"{address}: TLS needs your own certificates. {_CERTIFICATES}")


class ClusterPool(AbstractContextManager["ClusterPool"]):
    """A client for the scheduler at an address (see :class:`musicsim.library.processes.pools.WorkerPool`)."""

    shares_disk = False

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = self._connect()
        self._n_threads, self._counted = 0, 0.0

    def __exit__(self, *_: object) -> None:
        with suppress(OSError, TimeoutError):
            self._client.close()

    def state(self) -> ClusterState:
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        try:
            dashboard = self._client.dashboard_link
        except KeyError:  # the cluster has no workers
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
        """Run tasks like `Pool.outcomes`. Raises LibraryError if the scheduler is unreachable for ten minutes."""
        work = _Work(uuid.uuid4().hex, function, limits, preload, __version__)
        suspects: list[T] = []
        for item in self._run(work, tasks, MAX_BATCH, None):
            if item is not None and item[1] is _KILLED:
                suspects.append(item[0])
            else:
                yield item
        # one task at a time, because a worker that dies loses all its tasks
        for item in self._run(work, suspects, 1, 1):
            yield (item[0], WorkerDied(None)) if item is not None and item[1] is _KILLED else item

    def _run(
        self, work: "_Work", tasks: Iterable[T], max_batch: int, max_pending: int | None
    ) -> Generator[tuple[T, Any] | None, None, None]:
        """Yield each task with its result, or with `_KILLED` if its batch killed too many workers."""
        shared: Future | None = None  # `work`, sent to each worker only once
        waiting = iter(tasks)
        pending: dict[Future, list[T]] = {}
        lost: deque[list[T]] = deque()
        finished: SimpleQueue[Future] = SimpleQueue()
        size = 1
        try:
            while True:
                yield from self._reconnect(pending, lost)
                if shared is not None and shared.client is not self._client:
                    shared = None
                while len(pending) < (max_pending or self._max_pending()):
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
                if future not in pending:  # a result from the previous scheduler
                    continue
                batch = pending.pop(future)
                done = self._fetch(future)
                if done is None:
                    lost.append(batch)
                    shared = None  # `work` may have been lost, too
                    continue
                size = min(max(1, round(_BATCH_S * len(batch) / max(done.seconds, 1e-3))), 2 * size, max_batch)
                yield from zip(batch, done.results or [_KILLED] * len(batch), strict=True)
        finally:
            for future in pending:
                future.release()

    def _share(self, work: "_Work") -> "Future | None":
        if self._client.status != "running" or not self._client.nthreads():
            return None
        try:
            return self._client.scatter(work, broadcast=True, hash=False, timeout=CONNECT_S)
        except (OSError, TimeoutError, CancelledError, ValueError):
            # Dask raises a ValueError about "replicate" if the last worker stops or pauses during the call
            return None

    def _max_pending(self) -> int:
        if time.monotonic() - self._counted > _COUNT_EVERY_S and self._client.status == "running":
            with suppress(OSError, TimeoutError):
                self._n_threads = sum(self._client.nthreads().values())
            self._counted = time.monotonic()
        return _AHEAD * max(1, self._n_threads)

    def _fetch(self, future: "Future") -> "_Done | None":
        """Return the results of a batch and release them on the cluster; None if they were lost."""
        from distributed import KilledWorker

        try:
            if future.status == "error":
                error = future.exception(timeout=_FETCH_S)
                if isinstance(error, KilledWorker):
                    return _Done([], _BATCH_S)
                raise LibraryError(
                    f"{self.address}: the cluster's workers cannot run the tasks ({error}). Install musicsim "
                    f"{__version__} on all of them, and check that they have enough memory."
                )
            if future.status == "finished":
                return future.result(timeout=_FETCH_S)
        except (OSError, TimeoutError, CancelledError) as error:
            _log.warning("a batch was lost between the cluster and the client: %s", error)
        finally:
            future.release()
        return None

    def _reconnect(self, pending: "dict[Future, list[T]]", lost: deque[list[T]]) -> Iterator[None]:
        """If the client has given up on its scheduler, mark pending batches as lost and wait for a new scheduler."""
        if self._client.status not in ("closing", "closed"):
            return
        _log.warning("the connection to the scheduler was lost; waiting until the scheduler is back")
        lost.extend(pending.values())
        pending.clear()
        deadline = time.monotonic() + _GONE_S
        while True:
            yield None
            try:
                self._client = self._connect()
            except LibraryError:
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _connect(self) -> "Client":
        from distributed import Client

        try:
            return Client(self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise LibraryError(
                f"{self.address}: no Dask scheduler responds. Check the address, or start one with `dask scheduler`."
            ) from error


@dataclass(frozen=True, slots=True)
class _Done:
    results: list[Any]  # one result per task; empty if the batch has killed its workers
    seconds: float


@dataclass(frozen=True, slots=True)
class _Work:
    name: str  # unique
    function: Callable[[Any], Any]
    limits: Limits
    preload: tuple[str, ...]
    version: str  # musicsim version of the client


def _do(work: _Work, tasks: list[Any]) -> _Done:
    if work.version != __version__:
        raise LibraryError(f"a worker has musicsim {__version__}")
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
    """The worker processes of a Dask worker: one per thread, reused for later batches."""

    def __init__(self) -> None:
        self._idle: dict[str, list[Crew[Any]]] = {}  # maps the name of the work to idle crews
        self._lock = threading.Lock()

    def take(self, work: _Work) -> Crew[Any]:
        with self._lock:
            idle = self._idle.get(work.name)
            if idle:
                return idle.pop()
        # Dask workers are daemonic and may not have children; musicsim's workers end when their pipe closes
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        # Dask sets this variable for its own workers; it would make analysis constantly release and allocate memory
        os.environ.pop("MALLOC_TRIM_THRESHOLD_", None)
        return Crew(work.function, work.limits, work.preload, 1)

    def give_back(self, name: str, crew: Crew[Any]) -> None:
        with self._lock:
            self._idle.setdefault(name, []).append(crew)
        timer = threading.Timer(_IDLE_S, self._end, (name, crew, crew.n_given))
        timer.daemon = True
        timer.start()

    def _end(self, name: str, crew: Crew[Any], n_given: int) -> None:
        with self._lock:
            idle = self._idle.get(name, [])
            if crew not in idle or crew.n_given != n_given:
                return
            idle.remove(crew)
            if not idle:
                del self._idle[name]
        crew.close()


_crews = _Crews()
