"""The Playlist page.

May use base and components.
"""
