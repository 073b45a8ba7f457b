"""The Playlist page."""
