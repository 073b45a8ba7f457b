"""The constants of the model Sound for libraries of few songs (docs/sound.md), learned from a library of real music.

``python -m experiments.sound_prior LIBRARY`` writes ``musicsim/gaussians/prior.npz``. What is shipped was made of 311
recordings of 21 of Debian's game packages: means and covariances over all of them, nothing of any one piece.
"""

import argparse
from pathlib import Path

from musicsim import gaussians
from musicsim.explorer.upkeep.fitting import songs_with_frames
from musicsim.explorer.upkeep.sound import song_parts
from musicsim.library import Library

TARGET = Path(gaussians.__file__).with_name("prior.npz")
N_SONGS = 60.0
"""How much the constants count next to a library's songs."""


def main() -> None:
    """Learn the constants and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="a library whose audio features are stored")
    with Library.open(parser.parse_args().library) as library:
        songs = songs_with_frames(library, library.songs())
        parts = song_parts(library, songs, lambda *_: None)
    prior = gaussians.learn_prior(
        [song.timbre for song in parts], [song.fluctuation for song in parts], N_SONGS
    )
    with TARGET.open("wb") as stream:
        gaussians.save_prior(prior, stream)
    n_axes = f"{len(prior.timbre.axes)} and {len(prior.fluctuation.axes)} axes"
    print(f"{TARGET}: {TARGET.stat().st_size >> 10} kB, {n_axes} of {len(songs)} songs")


if __name__ == "__main__":
    main()
