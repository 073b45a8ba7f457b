"""Learning a metric from plays, labels, playlists or answers, and evaluating it on held-out artists.

May use snapshot, models and playlists; returns learned models, which refresh saves.
"""
