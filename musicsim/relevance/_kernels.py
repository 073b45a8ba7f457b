"""The compiled loop of :mod:`musicsim.relevance`: who shares most listeners with whom."""

from heapq import heappush, heapreplace
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_shared(
    items: Any, of_item: Any, users: Any, of_user: Any, heard: Any, among: Any, listeners: Any, k: int
) -> Any:
    """The `k` most similar of each of `items`, in any order: (n, k) numbers of items, -1 for none.

    The users of item i are ``users[of_item[i] : of_item[i + 1]]``; user u has heard the items ``among[j]`` of
    j in ``heard[of_user[u] : of_user[u + 1]]``, each of which has ``listeners[j]``.
    """
    shared = np.zeros(len(among), dtype=np.int32)
    met = np.empty(len(among) + 1, dtype=np.int32)
    best = np.full((len(items), k), -1, dtype=np.int64)
    for row in range(len(items)):
        item = items[row]
        own = of_item[item + 1] - of_item[item]
        n_met = 0
        for u in users[of_item[item] : of_item[item + 1]]:
            for j in heard[of_user[u] : of_user[u + 1]]:
                met[n_met] = j  # stays when it is the first time; a branch would be guessed wrong too often
                n_met += shared[j] == 0
                shared[j] += 1
        # the least similar on top, and of equal ones the highest item
        heap = [(0.0, 0) for _ in range(0)]
        least = 0.0
        for j in met[:n_met]:
            both = shared[j]
            shared[j] = 0
            similarity = both / (own + listeners[j] - both)
            if similarity < least or among[j] == item:
                continue
            other = among[j]
            if len(heap) < k:
                heappush(heap, (similarity, -other))
            elif (similarity, -other) > heap[0]:
                heapreplace(heap, (similarity, -other))
            if len(heap) == k:
                least = heap[0][0]
        for place in range(len(heap)):
            best[row, place] = -heap[place][1]
    return best
