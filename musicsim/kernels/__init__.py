"""Song by song similarity: kernels of timbre, harmony, rhythm, tags and plays.

Kernels take rows that are songs (plays: columns that are items) and return (n, m) float64, since solvers take them;
without B they compare A with itself. They need 8 n m bytes (80 GB for 100 000 songs by themselves; use the map and a
search index there). Maps are float32, as features are stored. Histograms are rows that are not negative and sum to 1.
All kernels lie in 0..1, are positive semidefinite, and are 1 between a song and itself (cosines: unless its row is 0).
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
