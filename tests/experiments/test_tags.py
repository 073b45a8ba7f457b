"""Tags from neighbors, words and stems of tags, and texts that find sound, against loops and definitions."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from benchmarks.support.report import Settings
from experiments.annotation import THRESHOLDS, annotation_curve, from_neighbors, gaussian_divergences, similar_by_tags
from experiments.stemming import as_stems, as_words, ranked, stemmed_share, stemmer
from experiments.text_search import PAIR, expected_precision, find_texts, measure, precisions, run
from musicsim.relevance import Relevance
from tests.extensions.embeddings.text_files import write_audio, write_text, write_tokenizer
from tests.shared import needs_data

# --- annotation ------------------------------------------------------------------------------------------


def test_precision_and_recall_are_means_over_tags():
    rng = np.random.default_rng(0)
    said, truth = rng.integers(11, size=(20, 6)) / 10, (rng.random((20, 6)) < 0.3).astype(float)
    said[:, 0], truth[:, 1] = 0.0, 0.0  # nowhere predicted; nowhere true
    precision, recall = annotation_curve(said, truth)
    for place, threshold in enumerate(THRESHOLDS):
        precisions, recalls = [], []
        for tag in range(6):
            found = {i for i in range(20) if said[i, tag] >= threshold - 1e-9}
            true = set(np.flatnonzero(truth[:, tag]))
            precisions.append(len(found & true) / len(found) if found else len(true) / 20)
            if true:
                recalls.append(len(found & true) / len(true))
        assert precision[place] == pytest.approx(np.mean(precisions))
        assert recall[place] == pytest.approx(np.mean(recalls))


def test_prediction_is_mean_of_neighbor_tags():
    D = np.array([[3.0, 1.0, 2.0]])
    tags = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert from_neighbors(D, tags, 2).tolist() == [[0.5, 1.0]]


def test_gaussian_divergence_matches_mean_log_ratio():
    rng = np.random.default_rng(1)
    songs = [rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)) + i for i in range(2)]
    D = gaussian_divergences(songs, songs)
    np.testing.assert_allclose(np.diag(D), 0, atol=1e-9)
    p, q = (stats.multivariate_normal(s.mean(axis=0), np.cov(s, rowvar=False) + 1e-3 * np.eye(3)) for s in songs)
    drawn = p.rvs(200_000, random_state=0)
    ratios = p.logpdf(drawn) - q.logpdf(drawn)
    assert D[0, 1] == pytest.approx(ratios.mean(), abs=5 * ratios.std() / np.sqrt(len(ratios)))


def test_songs_with_same_tags_are_similar():
    tags = np.repeat(np.eye(3), 12, axis=0)
    relevance = similar_by_tags(tags)
    assert all(set(relevance.relevant(i) // 12) == {i // 12} for i in range(36))


# --- stemming --------------------------------------------------------------------------------------------


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


@needs_data("mxm")
def test_musixmatch_words_are_stems():
    pytest.importorskip("snowballstemmer")
    n_words, share = stemmed_share(stemmer())
    assert n_words == 5000
    assert share > 0.8


# --- text search -----------------------------------------------------------------------------------------


_RNG = np.random.default_rng(0)


def true_precision(order, has):
    ranks = [place for place, song in enumerate(order, 1) if has[song]]
    return np.mean([sum(other <= rank for other in ranks) / rank for rank in ranks])


def test_precisions_equal_definition():
    order, has = _RNG.permutation(30), _RNG.random(30) < 0.3
    precision, place = precisions(order, has)
    assert precision.mean() == pytest.approx(true_precision(order.tolist(), has))
    assert order[place].tolist() == np.flatnonzero(has).tolist()


@pytest.mark.parametrize("n_relevant", [1, 3, 6])
def test_chance_is_mean_of_all_orders(n_relevant):
    has = np.arange(6) < n_relevant
    mean = np.mean([true_precision(order, has) for order in permutations(range(6))])
    assert expected_precision(6, n_relevant) == pytest.approx(mean)


def test_words_need_songs_and_artists():
    words_of = [{"common", "rare"}] * 4 + [{"common", "one artist"}] * 5 + [set()]
    artists = np.array([*"abcd", *"eeeee", "f"])
    assert list(find_texts(words_of, artists)) == ["common"]


def test_perfect_and_reversed_orders_lead_and_trail():
    artists, has = np.array([f"artist {i % 12}" for i in range(60)]), np.arange(60) < 10
    for order, holds in ((np.arange(60), True), (np.arange(60)[::-1], False)):
        rows, claims = measure({"first": has}, {"first": order}, artists, seed=0)
        assert [row["word"] for row in rows] == ["first", "all"]
        assert rows[0]["recall@10"] == holds
        assert rows[0]["recall@10 by chance"] == pytest.approx(1 / 6)
        assert [claim.holds for claim in claims] == [holds, holds]


def test_library_is_measured_with_pair(styles_library, tmp_path):
    audio, text, tokenizer = (tmp_path / name for name in PAIR)
    write_audio(audio)
    write_text(text)
    write_tokenizer(tokenizer)
    rows, claims = run(Settings(library=styles_library, cache=tmp_path), print)
    assert len(rows) == 4
    assert all(row["songs"] == 10 for row in rows[:3])
    assert len(claims) == 2
