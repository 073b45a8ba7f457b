"""The Dask cluster that works for a library, where there is one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from musicsim import CLUSTER_VARIABLE
from musicsim.errors import LibraryError
from musicsim.library import Library
from musicsim.library.processes.cluster import open_cluster
from musicsim.library.processes.pools import ClusterState, n_own
from musicsim.public import owner_only


@owner_only
def cluster_of(library: Library, named: str | None = None) -> str:
    """The address of the cluster of a library: the one named, else of the environment, else of the settings.

    Empty where worker processes of this machine do.
    """
    if named is not None:
        return named
    return os.environ.get(CLUSTER_VARIABLE) or str(library.settings["cluster"])


@owner_only
@contextmanager
def on_cluster(library: Library, named: str | None = None) -> Iterator[None]:
    """Let the cluster of a library, as of :func:`cluster_of`, do what can be done there within the block.

    Raises LibraryError if it does not answer.
    """
    address = cluster_of(library, named)
    if not address:
        yield
        return
    with open_cluster(address) as pool:
        library.pool = pool
        try:
            yield
        finally:
            library.pool = None


@owner_only
def cluster_state(library: Library, named: str | None = None) -> ClusterState:
    """What the cluster of a library has at this moment.

    Raises LibraryError if there is none, or nobody answers.
    """
    address = cluster_of(library, named)
    if not address:
        raise LibraryError(
            "no cluster is set: name one with --cluster, in MUSICSIM_CLUSTER of the environment, or in the settings."
        )
    if n_own(address):
        raise LibraryError(
            f"{address}: a scan starts these workers on this machine and ends them; none run now."
        )
    with open_cluster(address) as pool:
        return pool.state()
