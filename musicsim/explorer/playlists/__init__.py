"""Playlists of a library: edges between its songs, fitted weights, generated playlists and their reasons.

This package may import snapshot, search and models. It stores only the fitted weights, next to their model.
"""
