"""Playlists for ListenBrainz."""

from musicsim.hooks import Command, Extension

EXTENSION = Extension(
    name="listenbrainz",
    commands={"listenbrainz": Command("cli:group", "Send playlists to ListenBrainz.", "Connect")},
    backup_files=("listenbrainz.token",),
    hooks={"playlist_targets": "playlist_page:target"},
)
