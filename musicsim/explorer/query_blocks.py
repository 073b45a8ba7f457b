"""Blocks of songs that are compared with all others: by this process, or by the pool of a library."""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from musicsim.library import Library
from musicsim.library.processes.pools import done_by
from musicsim.library.processes.workers import Limits

T = TypeVar("T")

QUERIES_AT_ONCE = 256
"""Songs of a block. The same here and in a pool, so that numbers are the same, too."""

_WORTH_SENDING_S = 10.0
"""Of work here, from which on workers are given it: they take some 4 s to begin."""

# What is done is known, unlike a strange file, and a mapped index counts as memory.
_LIMITS = Limits(seconds=600.0, memory_mb=4096)


def of_blocks(library: Library, function: Callable[[T], Any], blocks: Iterable[T], n_blocks: int) -> Iterator[Any]:
    """What a function gives for each block, in their order.

    If the library has a pool of workers, they process the blocks, unless this process, which does the first two, takes
    less than ten seconds for the others. The function is importable by name, or a partial of such; each worker receives
    what the partial holds, such as vectors, once.
    """
    if library.pool is None:
        yield from map(function, blocks)
        return
    waiting = iter(blocks)
    yield from map(function, islice(waiting, 1))  # loads libraries: the second says how long a block takes
    started = time.perf_counter()
    second = list(map(function, islice(waiting, 1)))
    seconds = time.perf_counter() - started
    yield from second
    if (n_blocks - 2) * seconds < _WORTH_SENDING_S:
        yield from map(function, waiting)
    else:
        yield from done_by(library.pool, function, waiting, limits=_LIMITS)
