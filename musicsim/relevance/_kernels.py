"""Compiled search for the items that share the most listeners."""

from heapq import heappush, heapreplace
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_shared(
    items: Any,
    item_start: Any,
    users: Any,
    user_start: Any,
    played: Any,
    allowed: Any,
    listeners: Any,
    k: int,
    by_lift: bool,
) -> Any:
    """Return the numbers (n, k) of the `k` items most similar to each of `items`, in any order; -1 fills the rest.

    The users of item i are ``users[item_start[i] : item_start[i + 1]]``. User u has played the items ``allowed[j]`` for
    all j in ``played[user_start[u] : user_start[u + 1]]``; item ``allowed[j]`` has ``listeners[j]`` listeners.
    Similarity is the Jaccard index of the listeners, or their lift.
    """
    shared = np.zeros(len(allowed), dtype=np.int32)
    met = np.empty(len(allowed) + 1, dtype=np.int32)
    best = np.full((len(items), k), -1, dtype=np.int64)
    for row in range(len(items)):
        item = items[row]
        own = item_start[item + 1] - item_start[item]
        n_met = 0
        for u in users[item_start[item] : item_start[item + 1]]:
            for j in played[user_start[u] : user_start[u + 1]]:
                met[n_met] = j  # overwritten unless j is new; a branch would often be mispredicted
                n_met += shared[j] == 0
                shared[j] += 1
        # the top of the heap is the least similar item; among ties, it is the item with the highest number
        heap = [(0.0, 0) for _ in range(0)]
        least = 0.0
        for j in met[:n_met]:
            both = shared[j]
            shared[j] = 0
            # the number of users is a constant factor of lift, which does not change the order
            similarity = both / (own * listeners[j]) if by_lift else both / (own + listeners[j] - both)
            if similarity < least or allowed[j] == item:
                continue
            other = allowed[j]
            if len(heap) < k:
                heappush(heap, (similarity, -other))
            elif (similarity, -other) > heap[0]:
                heapreplace(heap, (similarity, -other))
            if len(heap) == k:
                least = heap[0][0]
        for rank in range(len(heap)):
            best[row, rank] = -heap[rank][1]
    return best
