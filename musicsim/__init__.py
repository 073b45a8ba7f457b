"""musicsim: drop a song, see what in your own library sounds like it, and why.

The names here are those for scripts and notebooks; they are imported on first use.
"""

from musicsim.extras import attach_stub

__version__ = "1.0.0"

LIBRARY_FILE = "library.sqlite"
"""Name of the file that marks a folder as a library; defined here so that finding libraries imports nothing else."""

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__, "app")
