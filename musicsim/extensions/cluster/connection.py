"""The Dask cluster of a library, if it has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from musicsim import library as libraries
from musicsim.errors import LibraryError
from musicsim.extensions.cluster.address import CLUSTER_VARIABLE, is_trusted, n_own
from musicsim.extensions.cluster.pool import ClusterState, open_cluster

_chosen: ContextVar[tuple[str | None, bool]] = ContextVar("chosen", default=(None, False))


@contextmanager
def choosing(address: str | None, *, trusted: bool = False) -> Iterator[None]:
    """Set the cluster to use within the block; None selects the default of :func:`cluster_of`."""
    token = _chosen.set((address, trusted))
    try:
        yield
    finally:
        _chosen.reset(token)


def cluster_of(library: libraries.Library) -> str:
    """Return the first address set by :func:`choosing`, the environment or the library; "" if none is set."""
    address, _ = _chosen.get()
    if address is None:
        address = os.environ.get(CLUSTER_VARIABLE) or str(library.settings["cluster"])
    return address.strip()


def _is_trusted(address: str) -> bool:
    return _chosen.get()[1] or is_trusted(address)


@contextmanager
def use_cluster(library: libraries.Library) -> Iterator[None]:
    """Use a library's cluster, if one is set, within the block. Raises LibraryError if it cannot be used."""
    address = cluster_of(library)
    if not address:
        yield
        return
    with open_cluster(address, is_trusted=_is_trusted(address)) as cluster:
        library.pool = cluster
        try:
            yield
        finally:
            library.pool = None


def cluster_state(library: libraries.Library) -> ClusterState:
    """Return the state of a library's cluster. Raises LibraryError if it is not set, not trusted or unreachable."""
    address = cluster_of(library)
    if not address:
        raise LibraryError(
            "no cluster is set. Set an address with --cluster, with MUSICSIM_CLUSTER, or in the library's settings."
        )
    if n_own(address):
        raise LibraryError(
            f"{address}: these workers run on this machine, but only during a scan. None are running now."
        )
    with open_cluster(address, is_trusted=_is_trusted(address)) as cluster:
        return cluster.state()
