"""The Playlists page."""
