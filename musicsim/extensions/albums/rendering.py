"""Albums as JSON, for the command line and the HTTP interface."""

from typing import Any

from musicsim.explorer import render_fields
from musicsim.extensions.albums.catalogue import Album
from musicsim.extensions.albums.similar import SimilarAlbum


def render_album(album: Album) -> dict[str, Any]:
    """Return an album as JSON; `songs` are the ids of its songs."""
    return render_fields(album, "id", "name", "year", "duration_s", artist="by") | {"songs": list(album.song_ids)}


def render_similar(similar: SimilarAlbum) -> dict[str, Any]:
    """Return an album and its similarity as JSON."""
    return render_album(similar.album) | {"similarity": round(similar.similarity, 4)}
