"""Files on disk: written whole or not at all, read within bounds, swept after a kill.

Knows no table and no song.
"""
