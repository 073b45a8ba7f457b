"""Process songs in blocks, in this process or in the library's pool of workers."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from musicsim.library import Library, Limits
from musicsim.library.processes.pools import map_with_retry

T = TypeVar("T")

QUERIES_AT_ONCE = 256  # songs per block; the same with and without a pool, so that the results are equal
WORTH_SENDING_S = 10.0  # minimum local work for using workers, which take about 4 s to start
# Limits are generous, because the work is trusted and a mapped index counts as memory.
_LIMITS = Limits(seconds=600.0, memory_mb=4096)


def map_blocks(library: Library, function: Callable[[T], Any], blocks: Iterable[T], n_blocks: int) -> Iterator[Any]:
    """Yield the result of a function for each block, in order.

    This process computes the first two blocks. If the library has a pool of workers and the other blocks would take
    more than ten seconds, the pool computes them. The function must be importable by name, or be a partial of an
    importable function. The arguments of the partial, such as vectors, are sent to each worker once.
    """
    if library.pool is None:
        yield from map(function, blocks)
        return
    waiting = iter(blocks)
    yield from map(function, islice(waiting, 1))  # not timed, because the first block also imports libraries
    started = time.perf_counter()
    second = list(map(function, islice(waiting, 1)))
    seconds = time.perf_counter() - started
    yield from second
    if (n_blocks - 2) * seconds < WORTH_SENDING_S:
        yield from map(function, waiting)
    else:
        yield from map_with_retry(library.pool, function, waiting, limits=_LIMITS)
