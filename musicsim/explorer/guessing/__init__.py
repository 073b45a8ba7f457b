"""Guesses of missing genres, artists and albums by what sounds like a song.

May use snapshot; changes tags only where a listener accepts.
"""

VISITORS_MAY = True
