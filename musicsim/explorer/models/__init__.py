"""Similarity models: from frames to a vector, saved and loaded whole.

May use the methods and the library; knows no page, job or snapshot.
"""
