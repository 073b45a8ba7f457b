"""Neighbours from a Milvus server that ``MUSICSIM_INDEX`` names, so that search is not bound to one machine.

A collection has the songs of a library under one model: ids, vectors, and the columns that filters ask about, with
hashes in place of names. So nothing that people wrote is ever part of an expression, and names and paths stay here. An
alias with the digest of all rows says what a collection holds: whoever has another state of the songs finds no
collection, and compares on this machine. :mod:`musicsim.extensions.index_server.push` brings songs there.
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

from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.audio import HEARD
from musicsim.errors import MusicsimError
from musicsim.explorer.snapshot.conditions import All, Among, Condition, Not, Within
from musicsim.explorer.snapshot.model_rows import ModelRows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.db.columns import Labels, SongColumns
from musicsim.public import is_public

_log = logging.getLogger(__name__)

T = TypeVar("T")

NAMES = ("artist", "genre", "folder", "key", "mode")
"""Columns of a collection that have the hash of a name, 0 where there is none."""
NUMBERS = ("year", "duration_s", *HEARD)
"""Columns of a collection that have a number."""
_UNKNOWN = -1e30  # stands for nan, which Milvus does not take
_MAX_NUMBER = 1e29  # of a bound

MAX_ROWS = 16_384
"""Rows that Milvus finds at once."""
_MAX_LISTED = 10_000  # names or ids of one expression: 0.2 MB
_SPARE = 16  # further rows, in place of songs that are not results
_WITHIN_S = 5.0
_MAX_ANSWER = 64 << 20  # bytes
_ASK_AGAIN_S = 30.0  # a server that is away is left alone for as long
_LOOK_AGAIN_S = 3.0  # so often it is looked whether songs have come

_NO_CONNECTION = 2  # pymilvus' code of an error for it
_NAME = "machine.index_name"  # text of the library with its name on servers
_SYNTAX = "MUSICSIM_INDEX should be milvus:http://host:19530 or milvus:/path/of/a/file.db"


class IndexServerError(MusicsimError):
    """The server that should answer searches cannot be reached, or does not have the songs as they are."""


class Server:
    """A Milvus server, or a file of Milvus Lite, as this process asks it.

    Parameters
    ----------
    named : str
        What ``MUSICSIM_INDEX`` says.
    """

    def __init__(self, named: str) -> None:
        self.address = named.removeprefix("milvus:")
        self._named = named
        self._client: Any = None
        self._away: tuple[float, str] | None = None  # when it did not answer, and why
        self._lock = threading.Lock()

    def __str__(self) -> str:
        shown = re.sub("^https?://([^/]*@)?", "", self.address)  # no link on a page, and no password
        return "The index server" if is_public() else f"Milvus at {shown}"

    def ask(self, method: str, *args: Any, **options: Any) -> Any:
        """Return the result of a method of pymilvus' client; raises as :meth:`call`."""
        return self.call(lambda client: getattr(client, method)(*args, **options))

    def call(self, question: Callable[[Any], T]) -> T:
        """Return the result of a question to a client.

        Raises IndexServerError if the server does not answer, or refuses.
        """
        with self._lock:
            if self._away is not None and time.monotonic() < self._away[0] + _ASK_AGAIN_S:
                raise self._is_away(self._away[1])
            try:
                client = self._client = self._client or self._connected()
            except Exception as error:
                raise self._is_away(_reason(error)) from error
        try:
            return question(client)
        except IndexServerError:
            raise
        except Exception as error:
            # the code of a call that broke is one of grpc, no number
            code = getattr(error, "code", None)
            if isinstance(code, int) and code != _NO_CONNECTION:
                raise self._error("refuses what it is asked", _reason(error)) from error
            raise self._is_away(_reason(error)) from error

    def _connected(self) -> Any:
        is_file = self.address.endswith(".db")
        if not self._named.startswith("milvus:") or not (is_file or re.match("https?://", self.address)):
            raise ValueError(_SYNTAX)
        if is_file and is_public():
            raise ValueError("a file would be written to")
        from pymilvus import MilvusClient

        for name in ("pymilvus", "pymilvus.milvus_client", "milvus_lite"):  # what fails is said here
            logging.getLogger(name).setLevel(logging.CRITICAL)
        _limit_lengths()
        address = os.path.expanduser(self.address) if is_file else self.address
        token = os.environ.get("MUSICSIM_INDEX_TOKEN", "")
        options = {"grpc.max_receive_message_length": _MAX_ANSWER}
        return MilvusClient(address, token=token, timeout=_WITHIN_S, dedicated=True, grpc_options=options)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Raise IndexServerError if what the server has answered cannot be worked with."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise self._error("gives an answer that cannot be understood", _reason(error)) from error

    def _is_away(self, reason: str) -> IndexServerError:
        now = time.monotonic()
        if self._away is None or now >= self._away[0] + _ASK_AGAIN_S:
            self._away = now, reason
            # a channel that broke takes its time to try again
            client, self._client = self._client, None
            with suppress(Exception):
                client.close()
            _log.info("The index server does not answer, this machine searches by itself: %s", reason)
        return self._error("does not answer", reason)

    def _error(self, what: str, reason: str) -> IndexServerError:
        """An error in words; visitors are not told the reason, which may name addresses and paths."""
        return IndexServerError(f"{self} {what}" + ("" if is_public() else f" ({reason})"))


@cache
def _limit_lengths() -> None:
    """Refuse results that are shorter than the server says: pymilvus fills them up to any length it names."""
    from pymilvus.client import grpc_handler

    class LimitedResult(grpc_handler.SearchResult):
        def __init__(self, said: Any, *args: Any, **options: Any) -> None:
            n_ids = max(len(said.ids.int_id.data), len(said.ids.str_id.data))
            if any(not 0 <= length <= n_ids for length in said.topks):
                raise ValueError("it names more songs than it sends")
            super().__init__(said, *args, **options)

    grpc_handler.SearchResult = LimitedResult


def _reason(error: Exception) -> str:
    """Why something failed, in a few words."""
    if isinstance(error, ImportError):
        return "pymilvus is not installed: pip install 'musicsim[milvus]'"
    if getattr(error, "code", None) == _NO_CONNECTION:
        return "no connection"
    return str(getattr(error, "message", "") or error).split("\n", 1)[0][:200].rstrip(".")


_server_named = cache(Server)


def index_server() -> Server | None:
    """The server that answers searches; None where this machine does."""
    named = os.environ.get("MUSICSIM_INDEX", "")
    return None if named in ("", "local") else _server_named(named)


def name_on_servers(library: Library) -> str | None:
    """The name of a library on index servers; None until its songs are brought to one."""
    return library.text(_NAME)


def give_name(library: Library) -> str:
    """Return the name of a library on index servers, which gets one if it has none."""
    name = name_on_servers(library) or uuid.uuid4().hex
    library.set_text(_NAME, name)
    return name


def remote_index(snapshot: Snapshot, rows: ModelRows) -> "RemoteIndex | None":
    """Make the index of a snapshot on the server; None if ``MUSICSIM_INDEX`` names none."""
    server = index_server()
    if server is None or snapshot.record is None:
        return None
    model_id = snapshot.record.id

    def collection() -> str | None:
        name = name_on_servers(snapshot.library)
        return None if name is None else collection_of(name, model_id)

    return RemoteIndex(server, collection, rows, snapshot.columns)


def remote_of(snapshot: Snapshot) -> "RemoteIndex | None":
    """The index of a snapshot on the server; None if this machine or another engine searches."""
    return snapshot.engine if isinstance(snapshot.engine, RemoteIndex) else None


class RemoteIndex:
    """Neighbours of one state of a library's songs from a server.

    Parameters
    ----------
    server : Server
    named : callable
        Returns the name of the collection; None until the first push.
    rows : ModelRows
    columns : SongColumns
        Of these rows.
    """

    def __init__(self, server: Server, named: Callable[[], str | None], rows: ModelRows, columns: SongColumns) -> None:
        self.server, self._named, self._rows, self._columns = server, named, rows, columns
        self._alias: str | None = None
        self._looked: float | None = None  # when it was looked for; None where it is there
        self._trouble: str | None = None
        self._is_ready = False

    # --- what is to be there ------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, npt.NDArray[Any]]:
        """The columns as a collection has them, by name, (n_rows,) each."""
        texts = {name: _hashes(getattr(self._columns, name)) for name in NAMES}
        numbers = {name: getattr(self._columns, name).astype(np.float64) for name in NUMBERS}
        return texts | {name: np.nan_to_num(values, nan=_UNKNOWN) for name, values in numbers.items()}

    @cached_property
    def digests(self) -> Int64Array:
        """A number a row that says which vector and which columns it has, int64 (n_rows,), not negative."""
        digest = _mixed(self._rows.file_rows.view(np.uint64))
        for values in self.values.values():
            digest = _mixed(digest ^ values.view(np.uint64))
        return (digest >> np.uint64(1)).astype(np.int64)

    @property
    def alias(self) -> str | None:
        """Name of a collection with exactly these rows; None until the first push."""
        if self._alias is None and (collection := self._named()) is not None:
            self._alias = alias_of(collection, self._rows.ids, self.digests)
        return self._alias

    # --- asking -------------------------------------------------------------------------------

    @property
    def trouble(self) -> str | None:
        """The reason why this machine searches, in one sentence; None if the server does."""
        self._try(lambda: None)
        return self._trouble

    def nearest(
        self, vector: Float32Array, k: int, allowed: BoolArray | None, condition: All | None
    ) -> Int64Array | None:
        """The rows nearest to a vector, as :meth:`musicsim.explorer.snapshot.snapshot.Snapshot.nearest` gives them.

        None where this machine has to find them: the server is away, does not have these songs, or would have to
        find more than it may at once.
        """
        n_allowed = len(self._rows.ids) if allowed is None else int(np.count_nonzero(allowed))
        n = min(k, n_allowed)
        if n + _SPARE > MAX_ROWS:
            return None
        return self._try(lambda: self._nearest(vector, n, self._filter(allowed, condition), allowed))

    def _try(self, do: Callable[[], T]) -> T | None:
        try:
            self._look()
            found = do()
            self._trouble = None
        except IndexServerError as error:
            self._is_ready, self._trouble = False, f"{error}: this machine searches by itself."
            return None
        return found

    def _look(self) -> None:
        """Look whether the songs are there as they are here. Raises IndexServerError where they are not."""
        if self._is_ready:
            return
        now = time.monotonic()
        if self._looked is None or now > self._looked + _LOOK_AGAIN_S:
            alias = self.alias
            if alias is not None and self.server.ask("has_collection", alias, timeout=_WITHIN_S):
                self.server.ask("load_collection", alias, timeout=_WITHIN_S)
                self._looked, self._is_ready = None, True
                return
            self._looked = now
        remedy = "" if is_public() else " (`musicsim index` brings them there)"
        raise IndexServerError(f"{self.server} does not have the songs as they are now{remedy}")

    def _nearest(self, vector: Float32Array, n: int, expression: str, allowed: BoolArray | None) -> Int64Array | None:
        reach = n + _SPARE
        while True:
            found = self.server.ask(
                "search", self.alias, [vector], filter=expression, limit=reach, output_fields=["id"],
                search_params={"params": {"ef": 2 * reach}}, anns_field="vector", timeout=_WITHIN_S,
            )  # fmt: skip
            with self.server.understood():
                n_found, rows = len(found[0]), self._rows.of([operator.index(hit["id"]) for hit in found[0]])
                if n_found > reach:
                    raise ValueError(f"{n_found} songs where {reach} were asked for")
                if len(np.unique(rows[rows >= 0])) < np.count_nonzero(rows >= 0):
                    raise ValueError("a song comes twice")
            rows = rows[rows >= 0]
            if allowed is not None:
                rows = rows[allowed[rows]]
            if len(rows) >= n:
                return rows[:n]
            if reach == MAX_ROWS or n_found < reach:
                return None  # too few of those near pass a filter that the server cannot know
            reach = min(4 * reach, MAX_ROWS)

    def _filter(self, allowed: BoolArray | None, condition: All | None) -> str:
        """Make a filter for the server.

        It has conditions on columns. A collection lacks tags and lyrics, as every import changes them. Conditions on
        these become the ids of the songs; if these are too many, results are filtered here.
        """
        if allowed is None or condition is None:
            return ""
        parts = [expression_of(part) for part in condition.conditions]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) and np.count_nonzero(allowed) <= _MAX_LISTED:
            return f"id in {self._rows.ids[allowed].tolist()}"
        return " and ".join(known)


def expression_of(condition: Condition) -> str | None:
    """A condition as an expression of Milvus, of names of columns and numbers only; None where there is none."""
    if isinstance(condition, Among):
        too_many = len(condition.names) > _MAX_LISTED
        return None if too_many else f"{condition.column} in {sorted(map(hash_of, condition.names))}"
    if isinstance(condition, Within):
        first, last = (_bound(condition.column, bound) for bound in (condition.first, condition.last))
        return f"({condition.column} >= {first!r} and {condition.column} <= {last!r})"
    if isinstance(condition, Not):
        negated = expression_of(condition.condition)
        return None if negated is None else f"not ({negated})"
    if isinstance(condition, All):
        parts = [expression_of(part) for part in condition.conditions]
        return None if None in parts else f"({' and '.join(map(str, parts))})"
    return None


def hash_of(name: str) -> int:
    """A name as a number of 63 bits."""
    return int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def _hashes(labels: Labels) -> Int64Array:
    return np.array([*map(hash_of, labels.names), 0], dtype=np.int64)[labels.codes]


def _bound(column: str, value: float) -> float:
    """A bound as numpy compares it with a column."""
    limited = min(max(float(value), -_MAX_NUMBER), _MAX_NUMBER)
    return float(np.float32(limited)) if column in HEARD else limited


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Numbers whose bits all depend on all bits (Steele, Lea and Flood, OOPSLA 2014: the finalizer of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def alias_of(collection: str, ids: Int64Array, digests: Int64Array) -> str:
    """Name of a collection with exactly the songs of some ids, each with its digest."""
    order = np.argsort(ids)
    held = ids[order].tobytes() + digests[order].tobytes()
    return f"{collection}_{blake2b(held, digest_size=8).hexdigest()}"


def collection_of(library_name: str, model_id: str) -> str:
    """Name of the collection of a library and model."""
    return f"{prefix_of(library_name)}{re.sub(r'[^A-Za-z0-9]', '_', model_id)}"


def prefix_of(library_name: str) -> str:
    """Prefix of the names of all collections of a library."""
    return f"musicsim_{library_name}_"
