"""Nearest-neighbor search: ``fit(X)``, ``add(X) -> ids``, ``remove(ids)``, ``query(Q, k) -> (distances, ids)``.

- :class:`ExactIndex` compares a query with every row.
- :class:`SpillTree` is the tree from the thesis, and :class:`SpillForest` is its modern form.
- :class:`PartitionIndex` scans k-means cells, and :class:`CompactIndex` leaves the vectors on disk.
- :class:`HammingIndex` searches bit codes, and :class:`MutualProximity` reduces hubness.
- :class:`NeighborsTransformer` makes an index usable in pipelines of scikit-learn.
- :func:`tune` chooses an index that reaches a given recall.
- :func:`find_duplicates` finds songs that are the same recording.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
