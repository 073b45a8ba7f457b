"""Neighbors from the Milvus server in ``MUSICSIM_INDEX``, for libraries that are too large to search on one machine.

A collection contains ids, vectors, and the columns for filters, with hashes instead of names. The name of its alias
contains a digest of all rows, so a process with different songs does not find the collection and searches locally.
"""

import logging
import operator
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim import extras
from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.audio import DESCRIPTORS
from musicsim.errors import MusicsimError
from musicsim.explorer import All, Among, AnyOf, Condition, ModelRows, Not, Snapshot, Within
from musicsim.library import Labels, Library, SongColumns
from musicsim.public import is_public

_log = logging.getLogger(__name__)

T = TypeVar("T")

NAMES = ("artist", "genre", "folder", "key", "mode")  # columns that contain hashes of names; 0 if unknown
NUMBERS = ("year", "duration_s", *DESCRIPTORS)  # columns that contain numbers
_UNKNOWN = -1e30  # number that replaces nan, which Milvus does not accept
_MAX_NUMBER = 1e29  # largest bound in a filter

MAX_ROWS = 16_384  # maximum number of results that Milvus returns for one search
MAX_LISTED = 10_000  # maximum number of names or ids in one expression, about 0.2 MB
SPARE = 16  # number of additional results, to replace songs that are filtered out on this machine
WITHIN_S = 5.0
MAX_ANSWER = 64 << 20  # bytes
ASK_AGAIN_S = 30.0  # seconds to pause after the server did not respond
LOOK_AGAIN_S = 3.0  # seconds to pause after the server did not have the songs

_NO_CONNECTION = 2  # pymilvus error code for a lost connection
NAME_KEY = "machine.index_name"  # key under which the library stores its name on servers
_SYNTAX = "MUSICSIM_INDEX must be milvus:http://host:19530 or milvus:/path/to/a/file.db"


class IndexServerError(MusicsimError):
    """The index server is unreachable, refuses a request, or does not have the current songs."""


class Server:
    """A client for a Milvus server or a Milvus Lite file; `setting` is the value of ``MUSICSIM_INDEX``."""

    def __init__(self, setting: str) -> None:
        self.address = setting.removeprefix("milvus:")
        self._setting = setting
        self._client: Any = None
        self._failure: tuple[float, str] | None = None  # time and reason of the last failure to connect
        self._lock = threading.Lock()

    def __str__(self) -> str:
        shown = re.sub("^https?://([^/]*@)?", "", self.address)  # pages must not show a link or the password
        return "The index server" if is_public() else f"Milvus at {shown}"

    def ask(self, method: str, *args: Any, **options: Any) -> Any:
        return self.call(lambda client: getattr(client, method)(*args, **options))

    def call(self, request: Callable[[Any], T]) -> T:
        """Call a function with the pymilvus client. Raises IndexServerError if the server fails or refuses it."""
        with self._lock:
            if self._failure is not None and time.monotonic() < self._failure[0] + ASK_AGAIN_S:
                raise self._fail(self._failure[1])
            try:
                client = self._client = self._client or self._connect()
            except Exception as error:
                raise self._fail(_reason(error)) from error
        try:
            return request(client)
        except IndexServerError:
            raise
        except Exception as error:
            # if the connection was lost, the code comes from gRPC and is not a number
            code = getattr(error, "code", None)
            if isinstance(code, int) and code != _NO_CONNECTION:
                raise self._error("refused the request", _reason(error)) from error
            raise self._fail(_reason(error)) from error

    def _connect(self) -> Any:
        is_file = self.address.endswith(".db")
        if not self._setting.startswith("milvus:") or not (is_file or re.match("https?://", self.address)):
            raise ValueError(_SYNTAX)
        if is_file and is_public():
            raise ValueError("a public demonstration cannot use Milvus Lite, which writes to its file")
        from pymilvus import MilvusClient

        for name in ("pymilvus", "pymilvus.milvus_client", "milvus_lite"):  # this class reports errors instead
            logging.getLogger(name).setLevel(logging.CRITICAL)
        _limit_lengths()
        address = os.path.expanduser(self.address) if is_file else self.address
        token = os.environ.get("MUSICSIM_INDEX_TOKEN", "")
        options = {"grpc.max_receive_message_length": MAX_ANSWER}
        return MilvusClient(address, token=token, timeout=WITHIN_S, dedicated=True, grpc_options=options)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Raise IndexServerError if the block cannot process a response from the server."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise self._error("sent a response that cannot be understood", _reason(error)) from error

    def _fail(self, reason: str) -> IndexServerError:
        now = time.monotonic()
        if self._failure is None or now >= self._failure[0] + ASK_AGAIN_S:
            self._failure = now, reason
            # drop the client, because a broken gRPC channel would reconnect slowly
            client, self._client = self._client, None
            with suppress(Exception):
                client.close()
            _log.info("the index server does not respond; searching locally instead: %s", reason)
        return self._error("does not respond", reason)

    def _error(self, problem: str, reason: str) -> IndexServerError:
        """Return an error; visitors do not see the reason, which may contain addresses and paths."""
        return IndexServerError(f"{self} {problem}" + ("" if is_public() else f" ({reason})"))


@cache
def _limit_lengths() -> None:
    """Make pymilvus reject responses with fewer results than declared; it would pad them to any declared length."""
    from pymilvus.client import grpc_handler

    class LimitedResult(grpc_handler.SearchResult):
        def __init__(self, response: Any, *args: Any, **options: Any) -> None:
            n_ids = max(len(response.ids.int_id.data), len(response.ids.str_id.data))
            if any(not 0 <= length <= n_ids for length in response.topks):
                raise ValueError("it declares more songs than it sends")
            super().__init__(response, *args, **options)

    grpc_handler.SearchResult = LimitedResult


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"pymilvus is not installed; run {extras.install_command('milvus')}"
    if getattr(error, "code", None) == _NO_CONNECTION:
        return "no connection"
    return str(getattr(error, "message", "") or error).split("\n", 1)[0][:200].rstrip(".")


server_named = cache(Server)  # returns the same `Server` for the same setting


def index_server() -> Server | None:
    """Return the server on which searches run; None if they run on this machine."""
    setting = os.environ.get("MUSICSIM_INDEX", "")
    return None if setting in ("", "local") else server_named(setting)


def give_name(library: Library) -> str:
    """Return the library's name on servers, and save a random one before the first push."""
    return library.update_text(NAME_KEY, lambda name: name or uuid.uuid4().hex)


def remote_index(snapshot: Snapshot, rows: ModelRows) -> "RemoteIndex | None":
    """Return the index for a snapshot on the server; None if ``MUSICSIM_INDEX`` is not set."""
    server = index_server()
    if server is None or snapshot.record is None:
        return None
    return RemoteIndex(server, snapshot.library, snapshot.record.id, rows, snapshot.columns)


def remote_of(snapshot: Snapshot) -> "RemoteIndex | None":
    """Return the index that a snapshot uses on the server; None if it uses this machine or another search engine."""
    return snapshot.engine if isinstance(snapshot.engine, RemoteIndex) else None


class RemoteIndex:
    """An index on a server for one state of a library's songs; `columns` contains the values of `rows`."""

    def __init__(self, server: Server, library: Library, model_id: str, rows: ModelRows, columns: SongColumns) -> None:
        self.server, self._library, self._model_id = server, library, model_id
        self._rows, self._columns = rows, columns
        self._alias: str | None = None
        self._checked: float | None = None  # time of the last check that did not find the songs, or None
        self._trouble: str | None = None
        self._is_ready = False

    @cached_property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """Dict from each column name in the collection to its values, (n_rows,)."""
        labels: dict[str, Labels] = {name: getattr(self._columns, name) for name in NAMES}
        texts = {n: np.array([*map(_hash, c.names), 0], dtype=np.int64)[c.codes] for n, c in labels.items()}
        numbers = {name: getattr(self._columns, name).astype(np.float64) for name in NUMBERS}
        return texts | {name: np.nan_to_num(values, nan=_UNKNOWN) for name, values in numbers.items()}

    @cached_property
    def digests(self) -> Int64Array:
        """Non-negative hashes of each row's vector and columns, int64 (n_rows,)."""
        digest = _mix(self._rows.file_rows.view(np.uint64))
        for values in self.values.values():
            digest = _mix(digest ^ values.view(np.uint64))
        return (digest >> np.uint64(1)).astype(np.int64)

    @property
    def alias(self) -> str | None:
        """Alias of a collection that contains exactly these rows; None before the first push."""
        if self._alias is None and (name := self._library.text(NAME_KEY)) is not None:
            self._alias = alias_of(collection_of(name, self._model_id), self._rows.ids, self.digests)
        return self._alias

    @property
    def trouble(self) -> str | None:
        """Reason why searches run on this machine; None if they run on the server."""
        self._try(lambda: None)
        return self._trouble

    def nearest(
        self, vector: Float32Array, k: int, allowed: BoolArray | None, condition: All | None
    ) -> Int64Array | None:
        """Return the rows nearest to a vector; None if the server fails, is missing songs, or sends too few results."""
        n = min(k, len(self._rows.ids) if allowed is None else int(np.count_nonzero(allowed)))
        if n + SPARE > MAX_ROWS:
            return None
        return self._try(lambda: self._nearest(vector, n, self._filter(allowed, condition), allowed))

    def _try(self, search: Callable[[], T]) -> T | None:
        try:
            self._check_songs()
            result = search()
            self._trouble = None
        except IndexServerError as error:
            self._is_ready, self._trouble = False, f"{error}. Searching locally instead."
            return None
        return result

    def _check_songs(self) -> None:
        if self._is_ready:
            return
        now = time.monotonic()
        if self._checked is None or now > self._checked + LOOK_AGAIN_S:
            alias = self.alias
            if alias is not None and self.server.ask("has_collection", alias, timeout=WITHIN_S):
                self.server.ask("load_collection", alias, timeout=WITHIN_S)
                self._checked, self._is_ready = None, True
                return
            self._checked = now
        remedy = "" if is_public() else " (run `musicsim index` to push them)"
        raise IndexServerError(f"{self.server} does not have the current songs{remedy}")

    def _nearest(self, vector: Float32Array, n: int, expression: str, allowed: BoolArray | None) -> Int64Array | None:
        limit = n + SPARE
        while True:
            results = self.server.ask(
                "search", self.alias, [vector], filter=expression, limit=limit, output_fields=["id"],
                search_params={"params": {"ef": 2 * limit}}, anns_field="vector", timeout=WITHIN_S,
            )  # fmt: skip
            with self.server.understood():
                n_results = len(results[0])
                rows = self._rows.find_rows([operator.index(result["id"]) for result in results[0]])
                rows = rows[rows >= 0]
                if n_results > limit:
                    raise ValueError(f"{n_results} songs, but at most {limit} were requested")
                if len(np.unique(rows)) < len(rows):
                    raise ValueError("a song occurs twice")
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= n:
                return rows[:n]
            if limit == MAX_ROWS or n_results < limit:
                return None  # too few of the nearest songs pass a filter that only this machine can apply
            limit = min(4 * limit, MAX_ROWS)

    def _filter(self, allowed: BoolArray | None, condition: All | None) -> str:
        """Return a filter expression for the server.

        Collections do not contain tags and lyrics, because every import changes them. A condition on tags or lyrics
        becomes a list of song ids if few songs meet it; otherwise the results are filtered on this machine.
        """
        if allowed is None or condition is None:
            return ""
        parts = [expression_of(part) for part in condition.conditions]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) and np.count_nonzero(allowed) <= MAX_LISTED:
            return f"id in {self._rows.ids[allowed].tolist()}"
        return " and ".join(known)


def expression_of(condition: Condition) -> str | None:
    """Convert a condition to a Milvus expression of column names and numbers; None if this is impossible."""
    if isinstance(condition, Among):
        too_many = len(condition.names) > MAX_LISTED
        return None if too_many else f"{condition.column} in {sorted(map(_hash, condition.names))}"
    if isinstance(condition, Within):
        first, last = np.clip([condition.first, condition.last], -_MAX_NUMBER, _MAX_NUMBER).tolist()
        if condition.column in DESCRIPTORS:  # round as NumPy does for these float32 columns
            first, last = float(np.float32(first)), float(np.float32(last))
        return f"({condition.column} >= {first!r} and {condition.column} <= {last!r})"
    if isinstance(condition, Not):
        negated = expression_of(condition.condition)
        return None if negated is None else f"not ({negated})"
    if isinstance(condition, All | AnyOf):
        parts = [expression_of(part) for part in condition.conditions]
        joint = " and " if isinstance(condition, All) else " or "
        return None if None in parts else f"({joint.join(map(str, parts))})"
    return None


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on all bits."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def alias_of(collection: str, ids: Int64Array, digests: Int64Array) -> str:
    """Return the alias of a collection that contains exactly the given songs and digests."""
    order = np.argsort(ids)
    content = ids[order].tobytes() + digests[order].tobytes()
    return f"{collection}_{blake2b(content, digest_size=8).hexdigest()}"


def collection_of(library_name: str, model_id: str) -> str:
    """Return the name of a model's collection; it depends on the columns, because new ones would be missing there."""
    columns = blake2b(" ".join(NUMBERS).encode(), digest_size=4).hexdigest()
    return f"{prefix_of(library_name)}{re.sub(r'[^A-Za-z0-9]', '_', model_id)}_{columns}"


def prefix_of(library_name: str) -> str:
    return f"musicsim_{library_name}_"
