"""MFCC frames of songs on disk: one float16 array a song, named by the hash of the file's bytes."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from musicsim.audio import derivative_blocks
from musicsim.errors import FeatureVersionError

__all__ = ["FrameStore"]


class FrameStore:
    """The frames of one library, below its folder ``frames``.

    A file is written under a temporary name and renamed, so that what stands under a hash is whole. Files of
    songs that were never entered (a scan was killed in between) are removed by :meth:`sweep`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, content_hash: str) -> Path:
        """Where the frames of these bytes lie, or would lie."""
        return self.folder / content_hash[:2] / f"{content_hash}.npy"

    def kept(self) -> set[str]:
        """Hashes of all frames that are kept: one listing instead of a question a song."""
        return {path.stem for path in self.folder.glob("??/*.npy") if not path.name.startswith(".")}

    def drop(self, content_hash: str) -> None:
        """Forget the frames of a song."""
        self.path(content_hash).unlink(missing_ok=True)

    def sweep(self, wanted: Iterable[str]) -> None:
        """Delete frames that belong to no song, and what writes that were cut off have left."""
        known = set(wanted)
        for path in self.folder.glob("??/*"):
            if path.name.startswith(".") or path.stem not in known:
                path.unlink(missing_ok=True)
        for path in self.folder.glob(".*.npy"):
            path.unlink(missing_ok=True)

    def mfcc(self, content_hash: str) -> npt.NDArray[np.float16]:
        """The MFCC of a song, float16 (n_frames, 13), as a read-only memory map.

        Raises
        ------
        FeatureVersionError
            If they were not kept.
        """
        try:
            return np.load(self.path(content_hash), mmap_mode="r", allow_pickle=False)
        except FileNotFoundError as error:
            raise FeatureVersionError(
                f"{self.path(content_hash)}: the frames of this song were not kept. Turn on keep_frames and scan "
                f"its folder again."
            ) from error

    def blocks(self, content_hash: str) -> Iterator[npt.NDArray[np.float32]]:
        """Delta-MFCC frames of a song in blocks, float32 (n, 39); of a song of hours, too, some MB at a time."""
        return derivative_blocks(self.mfcc(content_hash))
