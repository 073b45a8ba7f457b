"""Similarity models, which turn frames or other data of songs into vectors.

May use the methods and the library, but not snapshots, pages or jobs.
"""
