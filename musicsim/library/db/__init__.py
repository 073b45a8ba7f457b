"""The database: tables and their version, transactions, change log, and columns read from it.

This package imports only leaf modules of the library. Names are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
