"""The Dask cluster of a library, if it has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from musicsim import library as libraries
from musicsim.errors import LibraryError
from musicsim.extensions.cluster.address import CLUSTER_VARIABLE, is_trusted, n_own
from musicsim.extensions.cluster.pool import ClusterState, open_cluster

_chosen: ContextVar[tuple[str | None, bool]] = ContextVar("chosen", default=(None, False))


@contextmanager
def choosing(address: str | None, *, trusted: bool) -> Iterator[None]:
    """Set the cluster that :func:`pool` uses within the block; None selects the environment's or the library's."""
    token = _chosen.set((address, trusted))
    try:
        yield
    finally:
        _chosen.reset(token)


def pool(library: libraries.Library) -> AbstractContextManager[None]:
    address, trusted = _chosen.get()
    return on_cluster(library, address, trusted=trusted)


def cluster_of(library: libraries.Library, address: str | None = None) -> str:
    """Return `address`, else the cluster from the environment, else the one from the library's settings, else ""."""
    if address is not None:
        return address
    return os.environ.get(CLUSTER_VARIABLE) or str(library.settings["cluster"])


@contextmanager
def on_cluster(library: libraries.Library, address: str | None = None, *, trusted: bool = False) -> Iterator[None]:
    """Use a library's cluster, if any, within the block. Raises LibraryError if it is not trusted or unreachable."""
    address = cluster_of(library, address).strip()
    if not address:
        yield
        return
    with open_cluster(address, is_trusted=trusted or is_trusted(address)) as pool:
        library.pool = pool
        try:
            yield
        finally:
            library.pool = None


def cluster_state(library: libraries.Library, address: str | None = None, *, trusted: bool = False) -> ClusterState:
    """Return the state of a library's cluster. Raises LibraryError if it is not set, not trusted or unreachable."""
    address = cluster_of(library, address).strip()
    if not address:
        raise LibraryError(
            "no cluster is set. Set an address with --cluster, with MUSICSIM_CLUSTER, or in the library's settings."
        )
    if n_own(address):
        raise LibraryError(
            f"{address}: these workers run on this machine, but only during a scan. None are running now."
        )
    with open_cluster(address, is_trusted=trusted or is_trusted(address)) as pool:
        return pool.state()
