"""The playlist at ListenBrainz."""

from collections.abc import Callable, Sequence

from musicsim.extensions.listenbrainz.client import has_token, send_playlist
from musicsim.library import Library, Song
from musicsim.ui.playlist.sending import Sending, target_button


def target(sending: Sending) -> Callable[[], None] | None:
    """Offer ListenBrainz if the library's folder has a token."""
    return (lambda: _draw(sending)) if has_token(sending.snapshot.library) else None


def _draw(sending: Sending) -> None:
    target_button(sending, "Send to ListenBrainz", ":material/cloud_upload:", _send, key="playlist_listenbrainz")


def _send(library: Library, name: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    sent = send_playlist(library, name, songs)
    return f"Sent to [ListenBrainz]({sent.address}).", sent.lacking, "Left out, as they have no MusicBrainz id:"
