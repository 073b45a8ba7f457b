"""Playlists on a library: the walk over what songs share, fitted, drawn and explained.

May use snapshot, search and models; writes nothing but the fitted walk beside its model.
"""
