"""Learning what similar means from plays, labels, lists or answers, and judging it on held-out artists.

May use snapshot, models and playlists; returns learned models, which upkeep saves.
"""
