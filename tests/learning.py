"""What tests of training share: a collection with something to learn, and someone who watches."""

from pathlib import Path
from typing import Any

from tests.sounds import KINDS, write_song

__all__ = ["Patient", "write_styles"]


def write_styles(folder: Path, artists: int = 15, n_songs: int = 2, seconds: float = 2.0) -> Path:
    """Artists of one kind of sound each, with the kind as their genre; songs of some seconds, in FLAC."""
    for a in range(artists):
        kind = KINDS[a % len(KINDS)]
        for s in range(n_songs):
            write_song(
                folder / f"Artist {a}" / f"{s} {kind}.flac",
                kind,
                seed=100 * a + s,
                seconds=seconds,
                title=f"Song {a} {s}",
                artist=f"Artist {a}",
                genre=f"Genre {kind}",
            )
    return folder


class Patient:
    """A watcher that lets a training come to its end."""

    def tell(self, message: str, done: int = 0, total: int = 0) -> None:
        """Nothing to show it on."""

    def trace(self, point: dict[str, Any]) -> None:
        """Nothing to draw it on."""

    def is_enough(self) -> bool:
        """Never."""
        return False
