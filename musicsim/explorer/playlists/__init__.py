"""Playlists of a library: edges between its songs, fitted weights, generated playlists and their reasons.

May use snapshot, search and models. Writes only the fitted weights, next to their model.
"""
