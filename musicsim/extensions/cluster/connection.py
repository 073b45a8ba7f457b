"""The Dask cluster that works for a library, if there is one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from musicsim.errors import LibraryError
from musicsim.extensions.cluster.address import n_own
from musicsim.extensions.cluster.pool import ClusterState, open_cluster
from musicsim.extensions.cluster.trust import CLUSTER_VARIABLE, is_trusted
from musicsim.library import Library

_chosen: ContextVar[tuple[str | None, bool]] = ContextVar("chosen", default=(None, False))


@contextmanager
def choosing(named: str | None, *, trusted: bool) -> Iterator[None]:
    """Let :func:`pool` use a cluster within the block; None for that of the environment or the settings."""
    token = _chosen.set((named, trusted))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def pool(library: Library) -> Iterator[None]:
    """Give the library the cluster that was chosen, as :func:`on_cluster` does."""
    named, trusted = _chosen.get()
    with on_cluster(library, named, trusted=trusted):
        yield


def cluster_of(library: Library, named: str | None = None) -> str:
    """The address of the cluster of a library: the one named, else of the environment, else of the settings.

    Empty if worker processes of this machine do the work.
    """
    if named is not None:
        return named
    return os.environ.get(CLUSTER_VARIABLE) or str(library.settings["cluster"])


@contextmanager
def on_cluster(library: Library, named: str | None = None, *, trusted: bool = False) -> Iterator[None]:
    """Let the cluster of a library, as of :func:`cluster_of`, do what can be done there within the block.

    `trusted` trusts it this once; otherwise :mod:`musicsim.extensions.cluster.trust` decides.

    Raises LibraryError if it is not trusted or does not answer.
    """
    address = cluster_of(library, named).strip()
    if not address:
        yield
        return
    with open_cluster(address, is_trusted=trusted or is_trusted(address)) as pool:
        library.pool = pool
        try:
            yield
        finally:
            library.pool = None


def cluster_state(library: Library, named: str | None = None, *, trusted: bool = False) -> ClusterState:
    """The state of a library's cluster at this moment; `trusted` as of :func:`on_cluster`.

    Raises LibraryError if the library is without one, it is not trusted, or nobody answers.
    """
    address = cluster_of(library, named).strip()
    if not address:
        raise LibraryError(
            "no cluster is set: name one with --cluster, in MUSICSIM_CLUSTER of the environment, or in the settings."
        )
    if n_own(address):
        raise LibraryError(f"{address}: a scan starts these workers on this machine and ends them; none run now.")
    with open_cluster(address, is_trusted=trusted or is_trusted(address)) as pool:
        return pool.state()
