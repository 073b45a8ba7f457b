"""From folders to songs: find files, analyse them in worker processes, enter them.

May use the store and everything below it. Names are looked up when they are asked for: what decodes sound takes a
tenth of a second to import, and most commands only look something up.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
