"""The workers that analyze and encode songs of a library elsewhere, if an extension provides them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from musicsim.hooks import load_hooks
from musicsim.library import Library


@contextmanager
def pooled(library: Library) -> Iterator[None]:
    """Give the library its pool of workers for as long as the context lasts.

    The hook ``pool`` is a context manager ``function(library)`` that sets :attr:`Library.pool`.
    """
    with ExitStack() as stack:
        for pool in load_hooks("pool"):
            stack.enter_context(pool(library))
        yield
