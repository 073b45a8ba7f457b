"""Nearest neighbours: ``fit(X)``, ``add(X) -> ids``, ``remove(ids)``, ``query(Q, k) -> (distances, ids)``.

:class:`ExactIndex` compares with every row; :class:`SpillTree` is the tree of the thesis, :class:`SpillForest` its
modern form, :class:`PartitionIndex` looks into cells of k-means; :func:`tune` chooses one of these two and sets it
up for a recall. :class:`CompactIndex` leaves the vectors on the disk.
:class:`HammingIndex` does the same for bit codes.
:func:`find_duplicates` finds the songs that are the same recording; :class:`MutualProximity` adjusts distances so that
no song is near everything.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
