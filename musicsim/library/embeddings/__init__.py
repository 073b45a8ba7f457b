"""Vectors of songs that other programs made: read, kept, found for songs.

May use the store and importing.
"""
