"""Networks from extensions that describe new songs during a scan.

Extensions register ``function(folder: Path) -> LibraryNetworks`` for the hook ``audio_networks``; `folder` is that of
the library.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from musicsim._arrays import Float32Array
from musicsim.audio.networks import AudioNetwork
from musicsim.hooks import load_hooks


class LibraryNetworks(Protocol):
    """The networks of one extension in a library."""

    @property
    def networks(self) -> Sequence[AudioNetwork]: ...

    def keep(self, content_hash: str, vectors: Mapping[str, Float32Array]) -> None:
        """Store the vectors of a song, keyed by the network's key; other networks' vectors may be among them."""


def load_networks(folder: Path) -> list[LibraryNetworks]:
    """Return the networks of all extensions for the library in `folder`."""
    return [load(folder) for load in load_hooks("audio_networks")]
