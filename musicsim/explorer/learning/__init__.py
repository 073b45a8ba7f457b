"""Learning a metric from plays, labels, playlists or answers, and evaluating it on held-out artists.

This package may import snapshot, models and playlists. It returns learned models, which refresh saves.
"""
