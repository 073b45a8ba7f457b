"""Memory that goes back to the system, which Python and glibc keep otherwise."""

import ctypes
import gc
from contextlib import suppress

from musicsim.library.disk.arrays import release_pages


def give_back() -> None:
    """Give back pages of files that were read, and what was freed."""
    release_pages()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def tidy_up() -> None:
    """Give back what nobody needs any more; a tenth of a second, for when nobody waits."""
    gc.collect()
    give_back()
