"""Tests of topics of lyrics, which must recover vocabularies that do not overlap."""

import numpy as np
import pytest
from scipy import sparse

from musicsim.playlist import build_edges, describe_edge
from musicsim.playlist.topics import lyrics_topics

VOCABULARY = [*(f"love{i}" for i in range(10)), *(f"sea{i}" for i in range(10)), "the", "never"]


def lyrics(seed, shares):
    """Return songs of 60 words: a share from the first ten words, the rest from the second ten; "the" in all."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((len(shares), len(VOCABULARY)), dtype=int)
    for song, share in zip(counts, shares, strict=True):
        song[:10] = rng.multinomial(round(60 * share), np.full(10, 0.1))
        song[10:20] = rng.multinomial(round(60 * (1 - share)), np.full(10, 0.1))
        song[20] = 40
    return counts


@pytest.fixture
def two_topics():
    shares = [1.0] * 60 + [0.0] * 60 + [0.8, 0.2]
    return lyrics_topics(lyrics(0, shares), 2, max_share=0.9, random_state=0)


def test_songs_of_one_vocabulary_share_their_first_topic(two_topics):
    love, sea = two_topics.topics[0][0], two_topics.topics[60][0]
    assert love != sea
    assert {song[0] for song in two_topics.topics[:60]} == {love}
    assert {song[0] for song in two_topics.topics[60:120]} == {sea}
    # mixed songs: the heavier topic comes first
    assert two_topics.topics[120:] == [[love, sea], [sea, love]]


def test_words_tell_the_topic_and_common_ones_tell_none(two_topics):
    for song, name in ((0, "love"), (60, "sea")):
        words = two_topics.words(two_topics.topics[song][0], VOCABULARY, 4)
        assert len(words) == 4
        assert all(word.startswith(name) for word in words)
    assert all("the" not in two_topics.words(topic, VOCABULARY, 30) for topic in (0, 1))


def test_probabilities_sum_to_one_and_leave_out_what_was_left_out(two_topics):
    np.testing.assert_allclose(two_topics.word_probability.sum(axis=1), 1)
    assert two_topics.word_share.sum() == pytest.approx(1)
    assert np.all(two_topics.word_probability[:, 20:] == 0)


def test_a_share_of_one_leaves_no_word_out():
    found = lyrics_topics(lyrics(0, [1.0, 0.0] * 20), 2, max_share=1, random_state=0)
    assert found.word_share[20] == pytest.approx(0.4)
    assert found.word_share[21] == 0


def test_songs_without_words_have_no_topics():
    counts = lyrics(0, [1.0, 0.0] * 10)
    counts[3] = 0
    counts[4, :20] = 0  # only the word that occurs in all songs
    topics = lyrics_topics(counts, 8, max_share=0.9, random_state=0).topics
    assert topics[3] == topics[4] == []
    assert {len(song) for i, song in enumerate(topics) if i not in (3, 4)} == {5}
    assert all(len(set(song)) == len(song) for song in topics)


@pytest.mark.parametrize("counts", [np.zeros((3, 5)), np.zeros((0, 5)), np.ones((4, 5))])
def test_without_words_that_tell_songs_apart_there_are_no_topics(counts):
    found = lyrics_topics(counts, 4, random_state=0)
    assert found.topics == [[]] * len(counts)
    assert found.words(0, list("abcde")) == []


def test_a_seed_gives_the_same_topics_for_any_form_of_the_counts():
    counts = lyrics(1, np.linspace(0, 1, 40))
    forms = [counts, sparse.csr_array(counts), sparse.coo_matrix(counts)]
    found = [lyrics_topics(form, 3, max_share=0.9, random_state=4) for form in forms]
    assert found[0].topics == found[1].topics == found[2].topics


def test_words_reach_the_reason_of_a_step(two_topics):
    words = {topic: " ".join(two_topics.words(topic, VOCABULARY, 2)) for topic in (0, 1)}
    graph = build_edges(122, topics=two_topics.topics, topic_words=words)
    name = next(name for name in graph.names if name.startswith(f"topic-1:{two_topics.topics[60][0]} "))
    assert describe_edge(name).startswith("both about sea")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_topics": 0}, "n_topics=0"),
        ({"max_share": 0.0}, "max_share=0.0"),
        ({"max_share": 1.1}, "max_share=1.1"),
        ({"counts": [[-1, 2]]}, "counts must be finite and not negative"),
        ({"counts": [[np.nan, 2]]}, "counts must be finite and not negative"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        lyrics_topics(**{"counts": [[1, 0], [0, 1]], **arguments})


@pytest.mark.parametrize(
    ("topic", "vocabulary", "message"),
    [(0, ["a"], "vocabulary has 1 entries for 22"), (2, VOCABULARY, "topic=2"), (-1, VOCABULARY, "topic=-1")],
)
def test_bad_questions_for_words_are_named(two_topics, topic, vocabulary, message):
    with pytest.raises(ValueError, match=message):
        two_topics.words(topic, vocabulary)
