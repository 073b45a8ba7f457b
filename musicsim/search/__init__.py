"""Nearest neighbors: ``fit(X)``, ``add(X) -> ids``, ``remove(ids)``, ``query(Q, k) -> (distances, ids)``.

:class:`ExactIndex` compares a query with every row. :class:`SpillTree` is the tree of the thesis, :class:`SpillForest`
its modern form. :class:`PartitionIndex` scans cells of k-means. :class:`CompactIndex` leaves the vectors on the disk.
:class:`HammingIndex` searches in bit codes. :class:`MutualProximity` reduces hubs. :func:`tune` chooses an index for a
recall, and :func:`find_duplicates` finds songs that are the same recording.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
