"""Similarity models, which turn frames or other song data into vectors.

This package may import the methods and the library, but not snapshots, pages or jobs.
"""
