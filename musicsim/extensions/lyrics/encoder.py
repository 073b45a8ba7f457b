"""Words in lyrics as a representation for models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from musicsim.errors import ModelError
from musicsim.explorer import (
    MIN_SONGS_A_LABEL,
    RARITY_WEIGHTS,
    AboutModel,
    Arrays,
    Encoder,
    EncoderSettings,
    Floats,
    LoadPart,
    ReadFeatures,
    Representation,
    StoredArray,
    make_row_reader,
    weight_by_rarity,
)
from musicsim.extensions.lyrics.reading import read_lyrics
from musicsim.extensions.lyrics.store import LyricsStore
from musicsim.library import Library, Song
from musicsim.progress import Progress

_MAX_WORDS = 1_000


@dataclass(frozen=True, slots=True)
class LyricEncoder(Encoder):
    """Word counts of lyrics: one column per word."""

    stored: ClassVar = {"words": StoredArray(("f",), np.str_)}

    words: tuple[str, ...]

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], _settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        """Choose the most frequent words, except words that more than half of the songs contain."""
        read_lyrics(library, progress=progress)
        table = LyricsStore(library).table(min_songs=MIN_SONGS_A_LABEL)
        n_songs = np.asarray((table.counts > 0).sum(axis=0)).ravel()
        chosen = np.sort(np.argsort(-n_songs, kind="stable")[:_MAX_WORDS])
        has_words = np.asarray((table.counts > 0)[:, chosen].sum(axis=1)).ravel() > 0
        known = set(table.song_ids[has_words].tolist())
        songs = [song for song in songs if song.id in known]
        if not songs:
            raise ModelError(
                "the songs in this library do not share any words: add lyrics to the files' tags, or add `.lrc` files."
            )
        return songs, cls(tuple(table.vocabulary[i] for i in chosen.tolist()))

    def reader(self, library: Library, progress: Progress, /) -> ReadFeatures:
        read_lyrics(library, progress=progress)
        table = LyricsStore(library).table(min_songs=1, max_share=1.0)  # fit() has already chosen the words
        column = {word: at for at, word in enumerate(table.vocabulary)}
        columns = [column.get(word, -1) for word in self.words]

        def rows(at: Any) -> Floats:
            # the last column contains zeros, for words that no song contains
            counts = np.zeros((len(at), len(column) + 1), dtype=np.float32)
            counts[:, :-1] = table.counts[at].toarray() if len(at) else 0.0
            return counts[:, columns]

        return make_row_reader(table.song_ids, rows, self.n_features)

    @property
    def n_features(self) -> int:
        return len(self.words)

    def arrays(self) -> Arrays:
        return {"words": np.array(self.words, dtype=np.str_)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(tuple(arrays["words"].tolist()))


REPRESENTATIONS = {
    "lyrics": Representation("words in its lyrics", LyricEncoder, weight_by_rarity, RARITY_WEIGHTS, is_unit=True)
}
