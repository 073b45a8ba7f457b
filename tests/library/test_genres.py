"""Tests that spellings of a genre are one in columns, filters and counts, and can be merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.library.db.columns import Labels
from musicsim.library.stores.genres import genre_key, genre_spellings, merge_spellings


@pytest.mark.parametrize(
    "spellings",
    [
        ("Hip-Hop", "hip hop", "HIPHOP", "Hip–Hop"),
        ("R&B", "r & b", "R and B", "R+B"),
        ("Électro", "electro", "Electro "),
        ("Electronic / House", "electronic/house"),
    ],
)
def test_genre_key_ignores_case_accents_and_punctuation(spellings):
    assert len({genre_key(name) for name in spellings}) == 1


@pytest.mark.parametrize("pair", [("Rock", "Rock 2"), ("House", "Horse"), ("!!!", "???"), ("Jazz", "ジャズ")])
def test_different_letters_or_digits_are_different_genres(pair):
    assert genre_key(pair[0]) != genre_key(pair[1])


def test_most_used_spelling_is_suggested():
    (group,) = genre_spellings({"rock": 2, "Rock": 5, "ROCK": 1, "Jazz": 9})
    assert group == ("Rock", "rock", "ROCK")


@given(st.lists(st.sampled_from(["Rock", "rock", "ROCK", "Jazz", "jazz", "Pop", None]), max_size=30))
def test_folding_matches_counts_by_key_and_is_idempotent(genres):
    names = list(dict.fromkeys(name for name in genres if name))
    labels = Labels(np.array([names.index(g) if g else -1 for g in genres], dtype=np.int32), names)
    texts = merge_spellings(labels).texts()
    assert [text and genre_key(text) for text in texts] == [g and genre_key(g) for g in genres]
    assert len({text for text in texts if text}) == len({genre_key(g) for g in genres if g})
    for text in filter(None, texts):
        assert genres.count(text) == max(genres.count(g) for g in genres if g and genre_key(g) == genre_key(text))
    assert merge_spellings(merge_spellings(labels)).texts() == texts
