"""Songs of known sound."""

import pytest
import soundfile

from tests.extensions.mixtape.loops import RATE


@pytest.fixture
def mixable(store, tmp_path):
    """Return a function that writes sounds (n, channels) as songs of a library and returns these in order."""

    def write(*sounds, rate=RATE):
        (tmp_path / "music").mkdir(exist_ok=True)
        for i, y in enumerate(sounds):
            soundfile.write(tmp_path / "music" / f"{i:02d}.wav", y, rate, subtype="FLOAT")
        assert store.add(tmp_path / "music", n_workers=1, anyway=True).failures == []
        return sorted(store.songs(), key=lambda song: song.path)

    return write
