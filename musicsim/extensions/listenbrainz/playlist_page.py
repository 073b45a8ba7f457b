"""The button that sends a playlist to ListenBrainz."""

from collections.abc import Callable, Sequence
from functools import partial

from musicsim.extensions.listenbrainz.client import has_token, send_playlist
from musicsim.library import Library, Song
from musicsim.ui import Sending, target_button


def target(sending: Sending) -> Callable[[], None] | None:
    """Return a function that draws the button, or None if the library has no token."""
    if not has_token(sending.snapshot.library):
        return None
    label, icon = "Send to ListenBrainz", ":material/cloud_upload:"
    return partial(target_button, sending, label, icon, _send, key="playlist_listenbrainz")


def _send(library: Library, name: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    sent = send_playlist(library, name, songs)
    return f"Sent to [ListenBrainz]({sent.address}).", sent.lacking, "Left out because they have no MusicBrainz id:"
