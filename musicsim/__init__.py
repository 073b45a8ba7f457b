"""musicsim: drop a song, see what in your own collection sounds like it, and why."""

__version__ = "0.1.0"
