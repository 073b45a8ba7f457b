"""Mixing: beats at the ends of songs, fades on the beat, and an order in which keys and tempos of neighbors fit.

The file mixer and the player share this package.
"""
