"""What a file says of itself to FFmpeg."""

from __future__ import annotations

from typing import Any

import av

from musicsim.audio.reader import SAFE_OPTIONS, TAGS_MAY_BE_BROKEN

_PROBED_BYTES = 65_536


def container_tags(file: Any, formats: str) -> list[tuple[str, str]]:
    """Names and values of the tags that FFmpeg finds: those of the file, then those of its first stream of sound.

    Parameters
    ----------
    file : binary file object, or what reads and seeks as one
    formats : str
        FFmpeg's names of the containers that it may be, with commas between them.

    Raises
    ------
    av.FFmpegError
        If it is none of these.
    """
    options = SAFE_OPTIONS | {"format_whitelist": formats, "probesize": str(_PROBED_BYTES)}
    with av.open(file, options=options, **TAGS_MAY_BE_BROKEN) as container:
        said = [container.metadata, *(stream.metadata for stream in container.streams.audio[:1])]
        return [item for tags in said for item in tags.items()]
