"""Pools of workers on other machines, from extensions, which analyze and encode a library's songs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from musicsim import library as libraries
from musicsim.hooks import load_hooks


@contextmanager
def use_pool(library: libraries.Library) -> Iterator[None]:
    """Give the library its pool of workers within the context.

    The hook ``pool`` is a context manager ``function(library)`` that sets :attr:`Library.pool`.
    """
    with ExitStack() as stack:
        for pool in load_hooks("pool"):
            stack.enter_context(pool(library))
        yield
