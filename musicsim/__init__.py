"""musicsim: drop a song, see what in your own collection sounds like it, and why."""

__version__ = "1.0.0"

LIBRARY_FILE = "library.sqlite"
"""The file that makes a folder a library; here, because finding a library must not import the store."""
