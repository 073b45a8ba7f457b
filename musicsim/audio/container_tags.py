"""Tags of a file as FFmpeg reads them."""

from __future__ import annotations

from typing import Any

import av

from musicsim.audio.reader import SAFE_OPTIONS, TAGS_MAY_BE_BROKEN


def container_tags(file: Any, formats: str) -> list[tuple[str, str]]:
    """Return (name, value) of all tags: those of the file, then those of its first audio stream.

    Raises av.FFmpegError if the file is none of these.

    Parameters
    ----------
    file : binary file object
        Needs `read` and `seek` only.
    formats : str
        FFmpeg's names of the allowed containers, separated by commas.
    """
    options = SAFE_OPTIONS | {"format_whitelist": formats, "probesize": "65536"}
    with av.open(file, options=options, **TAGS_MAY_BE_BROKEN) as container:
        sources = [container.metadata, *(stream.metadata for stream in container.streams.audio[:1])]
        return [item for tags in sources for item in tags.items()]
