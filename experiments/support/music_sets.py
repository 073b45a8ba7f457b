"""Sets of real music: libraries of labeled pieces, with models that were fitted on these pieces only."""

import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.support.report import Progress, Settings, digest
from experiments.support.game_music import LABELS, fetch
from experiments.support.pieces import Pieces, labelled, tagged
from experiments.support.timbre import constants_of
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import Library
from musicsim.library.stores.files import absolute

__all__ = ["MusicSet", "find_pieces", "fitted_copy", "music_sets"]


@dataclass(frozen=True, slots=True)
class MusicSet:
    """A set of pieces; the library is a copy that may be changed."""

    name: str
    library: Library
    pieces: Pieces


def music_sets(settings: Settings, cache: Path, progress: Progress) -> Generator[MusicSet, None, None]:
    """Yield the sets that the command line names, or else the 312 pieces, which are fetched.

    The constants that ship with the program are not used, because they were learned from the 312 pieces. The analysis
    of each set is stored in `cache`. Raises FetchError if the pieces cannot be fetched.
    """
    folders = [absolute(music) for music in settings.sets or [settings.music] if music is not None]
    sources: list[tuple[Path, Path | None]] = []  # a library, and the folder of its music
    if settings.library is not None:
        sources.append((settings.library, None))
    elif not folders:
        fetch(cache / "music", progress)
        sources.append((cache / "library", absolute(cache / "music")))
    sources += [(cache / f"library-{sha256(bytes(music)).hexdigest()[:8]}", music) for music in folders]
    for number, (source, music) in enumerate(sources, start=1):
        name = f"set {number}"
        if music is not None:
            settings.inputs[name] = digest(music)
            progress(f"analyzing {music}")
            with Library.open(source) as library:
                library.add(music)
        with fitted_copy(source, progress) as library:
            pieces = find_pieces(library, music, settings.labels)
            settings.facts[name] = (
                f"{len(pieces)} pieces, {len(pieces.queries)} queries by {pieces.n_composers} composers"
            )
            yield MusicSet(name, library, pieces)


@contextmanager
def fitted_copy(source: Path, progress: Progress) -> Iterator[Library]:
    """Open a copy of a library that may be changed, with models fitted without the constants of other music."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "library"
        shutil.copytree(source, folder)
        with Library.open(folder) as library:
            progress("fitting the models")
            with constants_of(library, ()):
                refresh(library, force=True)
            yield library


def find_pieces(library: Library, music: Path | None, labels: Path | None = None) -> Pieces:
    """Return the pieces with their labels: those of a table, those that ship with the program, or the artist tags.

    The shipped labels are used if most of the songs have one.
    """
    if labels is not None or music is None:
        return labelled(library, labels or LABELS)
    try:
        pieces = labelled(library, LABELS)
    except ValueError:  # none of these songs
        return tagged(library, music)
    return pieces if 2 * len(pieces) > len(library) else tagged(library, music)
