"""Tests that blocks of songs go to the pool of a library if that saves time."""

import numpy as np

from musicsim.explorer import query_blocks


def test_only_slow_blocks_are_sent_to_pool(monkeypatch):
    monkeypatch.setattr(query_blocks, "map_with_retry", lambda pool, function, tasks, limits: (pool for _ in tasks))

    class _Library:
        pool = "pool"

    def done(seconds, n_blocks=4):
        monkeypatch.setattr(query_blocks, "WORTH_SENDING_S", seconds)
        return list(query_blocks.map_blocks(_Library, abs, iter([-1] * n_blocks), n_blocks))

    assert done(np.inf) == [1, 1, 1, 1]
    assert done(0.0) == [1, 1, "pool", "pool"]
    assert (done(0.0, 1), done(0.0, 0)) == ([1], [])
    _Library.pool = None
    assert done(0.0) == [1, 1, 1, 1]
