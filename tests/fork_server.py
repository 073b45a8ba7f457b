"""The fork server of this process, which starts its workers."""

from multiprocessing import forkserver


def fork_server_pid() -> int:
    """Return the number of its process."""
    return forkserver._forkserver._forkserver_pid  # noqa: SLF001  # the standard library does not publish it
