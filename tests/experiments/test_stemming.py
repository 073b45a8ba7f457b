"""Words and stems of tags."""

from collections import Counter

import numpy as np
import pytest

from experiments.stemming import as_stems, as_words, ranked, stemmed_share, stemmer
from musicsim.relevance import Relevance
from tests.shared import SHARED


def test_word_counts_sum_tag_counts():
    tags = Counter({"Female Vocalists": 3, "female": 2, "80s_synth": 1})
    assert as_words(tags) == {"female": 5, "vocalists": 3, "s": 1, "synth": 1}


def test_stems_merge_words_and_drop_stop_words():
    pytest.importorskip("snowballstemmer")
    words = Counter({"vocalist": 1, "vocalists": 2, "the": 9})
    assert as_stems(words, stemmer(), frozenset({"the"})) == {"vocalist": 3}


def test_artists_with_same_tags_are_nearest():
    texts = [Counter({f"kind {i % 2}": 1, f"own {i}": 1}) for i in range(8)]
    scores, n_words = ranked(texts, Relevance.from_labels(np.arange(8) % 2))
    assert n_words == 10
    assert scores["auc"].tolist() == [1.0] * 8


@pytest.mark.skipif(not SHARED.is_dir(), reason="no data: set MUSICSIM_SHARED_DATA to the folder of public data sets")
def test_musixmatch_words_are_stems():
    pytest.importorskip("snowballstemmer")
    n_words, share = stemmed_share(SHARED / "mxm" / "mxm_dataset_test_part.txt.xz", stemmer())
    assert n_words == 5000
    assert share > 0.8
