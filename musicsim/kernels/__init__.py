"""Similarity matrices between songs: kernels of timbre, harmony, rhythm, tags and plays.

Kernels take one row per song (for plays: one column per item) and return a float64 array (n, m), because solvers need
this type. Without B, they compare A with itself. They need 8 n m bytes (80 GB for 100,000 songs); for many songs, use
the corresponding map and a search index. Maps are float32, like stored features. Histograms are nonnegative rows that
sum to 1. All kernels are between 0 and 1 and positive semidefinite. They are 1 between a song and itself, except for
cosines of a row of zeros.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
