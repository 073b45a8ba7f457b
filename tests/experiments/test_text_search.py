"""Tests of the measures of texts that find sound: by brute force, and with a small pair of networks."""

from itertools import permutations

import numpy as np
import pytest

from benchmarks.support.report import Settings, Skipped
from experiments.text_search import PAIR, expected_precision, find_texts, measure, precisions, run
from tests.extensions.embeddings.text_files import write_audio, write_text, write_tokenizer

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
    with pytest.raises(Skipped, match=r"audio\.onnx is missing"):
        run(Settings(library=styles_library, cache=tmp_path), print)
    audio, text, tokenizer = (tmp_path / name for name in PAIR)
    write_audio(audio)
    write_text(text)
    write_tokenizer(tokenizer)
    rows, claims = run(Settings(library=styles_library, cache=tmp_path), print)
    assert len(rows) == 4
    assert all(row["songs"] == 10 for row in rows[:3])
    assert len(claims) == 2
