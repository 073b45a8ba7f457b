"""musicsim: drop a song, see what in your own library sounds like it, and why."""

__version__ = "1.0.0"

LIBRARY_FILE = "library.sqlite"
"""Name of the file that marks a folder as a library; defined here so that finding libraries imports nothing else."""
