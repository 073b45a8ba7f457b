"""Waiting for workers, on a machine that has other things to do."""

import time

PATIENCE_S = 120.0


def outcome(decoding):
    """What comes of a decoding; raises its error."""
    until = time.monotonic() + PATIENCE_S
    while not decoding.within(0.1):
        assert time.monotonic() < until, "a worker takes too long"
    return decoding.future.result()


def until(condition) -> None:
    """Wait for something to become true."""
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "what was waited for did not come"
        time.sleep(0.01)
