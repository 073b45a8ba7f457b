"""Pools of workers on other machines that analyze and encode a library's songs; extensions provide them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from musicsim import library as libraries
from musicsim.hooks import UsePool
from musicsim.registry import load_hooks


@contextmanager
def use_pool(library: libraries.Library) -> Iterator[None]:
    """Give the library a pool of workers while the context is active."""
    with ExitStack() as stack:
        for pool in load_hooks(UsePool):
            stack.enter_context(pool(library))
        yield
