"""Tests of the reasons for a similarity: shares that add up, matching passages and fitting words."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.audio import FLUCTUATION_SIZE, HOP, SAMPLE_RATE
from musicsim.codebook import Codebook
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.models.encoders import SOUND_SIZES, CodewordEncoder
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.search.query import find_similar, read_example, similarity_of
from musicsim.explorer.search.why import Side, codeword_shares, describe_codewords, explain_pair
from musicsim.explorer.search.why_groups import GROUPS, REST, Compared, largest_shares, sound_groups
from musicsim.explorer.search.why_sides import explain_result, sides_of
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.kernels import ppk_kernel, ppk_similarity
from tests.sounds import write_song

FRAME_S = HOP / SAMPLE_RATE


def _histograms(rng, n, width):
    return rng.dirichlet(np.full(width, 0.5), size=n).astype(np.float32)


def _codebook(n_codewords=24, tau=2):
    """Build a codebook with codewords far apart, each with only its own frames nearby."""
    centres = np.random.default_rng(5).standard_normal((n_codewords, 39)) * 6
    book = Codebook(n_codewords, tau=tau)
    book.codewords_, book.counts_ = centres, np.ones(n_codewords, dtype=np.int64)
    book.mean_, book.scale_, book.n_features_in_ = np.zeros(39), np.ones(39), 39
    return book


def _model(codebook, L=None, n_songs=10):
    model = SimilarityModel(n_codewords=len(codebook.codewords_), tau=codebook.tau).use_encoder(
        CodewordEncoder(codebook)
    )
    H = _histograms(np.random.default_rng(6), n_songs, len(codebook.codewords_))
    model.fit_space(H)
    return model if L is None else model.add_metric(L, model.vectors(H))


def _song(rng, codebook, pieces):
    """Build frames that stay on codewords, from pairs of a codeword (None: any of the last eight) and seconds."""
    parts = []
    for codeword, seconds in pieces:
        n = round(seconds / FRAME_S)
        which = rng.integers(16, 24, n) if codeword is None else np.full(n, codeword)
        parts.append(codebook.codewords_[which] + 0.1 * rng.standard_normal((n, 39)))
    return np.concatenate(parts).astype(np.float32)


def _side(codebook, frames, **facts):
    blocks = (frames[i : i + 700] for i in range(0, len(frames), 700))
    histogram = codebook.transform([frames])[0]
    return Side(histogram, blocks, np.ones(10, np.float32), len(frames) * FRAME_S, "title", **facts)


def similarity_of_parts(parts):
    return sum(part.stages[-1].similarity for part in parts)


def group_shares(a, b, sample, L):
    """Return the shares of the groups of a model like Sound, without a learned metric."""
    group = sound_groups(len(a))
    (shares,) = Compared(tuple(GROUPS), group, np.array([a, b]), np.array(sample), (L,)).shares()
    return shares


@given(seed=st.integers(0, 10_000), width=st.integers(2, 12), rank=st.integers(1, 12))
def test_codeword_shares_match_definition(seed, width, rank):
    rng = np.random.default_rng(seed)
    a, b = np.sqrt(rng.dirichlet(np.ones(width), size=2))
    L = rng.standard_normal((rank, width))
    M = L.T @ L
    distance, similarity = codeword_shares(a, b, L)
    for w in range(width):
        truth = (a - b)[w] * sum(M[w, v] * (a - b)[v] for v in range(width))
        assert distance[w] == pytest.approx(truth, abs=1e-9)
    d = np.linalg.norm(L @ a - L @ b)
    assert distance.sum() == pytest.approx(d**2, abs=1e-9)
    assert similarity.sum() == pytest.approx(1 - d**2 / 2, abs=1e-9)


def test_shares_without_metric_match_kernel(rng):
    A, B = _histograms(rng, 2, 30).astype(np.float64)
    _, similarity = codeword_shares(np.sqrt(A), np.sqrt(B), np.eye(30))
    # float32 histograms sum to 1 within 1e-7, and the shares divide by that sum
    np.testing.assert_allclose(similarity, np.sqrt(A * B), atol=1e-7)
    assert similarity.sum() == pytest.approx(ppk_kernel([A], [B])[0, 0], abs=1e-6)


def test_metric_may_give_negative_shares():
    # the second codeword compensates for the first, because L depends on their sum only
    distance, _ = codeword_shares([0.8, 0.1], [0.1, 0.5], [[1.0, 1.0]])
    np.testing.assert_allclose(distance, [0.7 * 0.3, -0.4 * 0.3])


def test_shares_of_zero_vector_are_finite():
    distance, similarity = codeword_shares(np.zeros(3), [0.0, 0.6, 0.8], np.eye(3))
    np.testing.assert_allclose(distance, [0, 0.36, 0.64])
    np.testing.assert_allclose(similarity, 0.0, atol=1e-15)


def test_words_compare_codeword_with_others():
    book = _codebook()
    book.codewords_[:] = 0.0
    book.codewords_[:, 0] = np.arange(24)  # loudness
    book.codewords_[:, 1] = np.roll(np.arange(24), 12)  # darkness
    book.codewords_[:, 13] = 1.0  # all of them change alike
    assert describe_codewords(book, [0, 6, 8, 12, 23]) == [
        "very quiet",
        "dark, quiet",
        "very dark",
        "very bright",
        "very loud",
    ]
    book.codewords_[3, 20] = -9.0
    assert describe_codewords(book, [3])[0].endswith("very changing")


def test_words_ignore_unused_codewords():
    book = _codebook()
    book.codewords_[:12, 0], book.codewords_[12:, 0] = np.arange(12), -1000.0
    book.counts_[12:] = 0
    assert "very quiet" in describe_codewords(book, [0])[0]


def test_passages_match_planted_sounds(rng):
    book = _codebook(tau=1)  # the second nearest would be shared, too
    one = _song(rng, book, [(1, 4), (3, 3), (1, 6), (5, 2.5), (2, 4)])
    other = _song(rng, book, [(8, 5), (5, 2.5), (9, 9), (3, 3), (8, 2)])
    why = explain_pair(_side(book, one), _side(book, other), _model(book))
    found = [{why.shared[p.slot]: p for p in passages} for passages in why.passages]
    # A passage may be longer or shorter by half of the smoothing (0.75 s).
    for codeword, starts, seconds in ((3, (4, 16.5), 3), (5, (13, 5), 2.5)):
        sound = describe_codewords(book, [codeword])[0].replace("very ", "")
        for passages, start in zip(found, starts, strict=True):
            assert passages[sound].start_s == pytest.approx(start, abs=0.8)
            assert passages[sound].end_s == pytest.approx(start + seconds, abs=0.8)


def test_letters_mark_no_silence_and_no_sound_twice(rng):
    book = _codebook(tau=1)
    book.codewords_[:, 0] = 0.0
    book.codewords_[7, 0] = -30 * np.sqrt(40)  # the level in dB, summed over 40 bands
    fade = [(7, 5)]
    one = _song(rng, book, [(1, 4), (3, 3), (2, 4), *fade])
    other = _song(rng, book, [*fade, (3, 3), (9, 4), (1, 4)])
    why = explain_pair(_side(book, one), _side(book, other), _model(book))
    assert len(why.shared) == len(set(why.shared)) >= 1
    for passages, (start, stop) in zip(why.passages, ((0, 11), (5, 16)), strict=True):
        assert [p.slot for p in passages] == list(range(len(why.shared))), "every letter has a place in both songs"
        assert all(start - 0.8 <= p.start_s and p.end_s <= stop + 0.8 for p in passages)
    assert why.curves[0][-60:].max() == 0.0


def test_curves_peak_at_shared_sound(rng):
    book = _codebook(tau=1)
    one = _song(rng, book, [(1, 6), (3, 6), (2, 6)])
    other = _song(rng, book, [(8, 12), (3, 6)])
    why = explain_pair(_side(book, one), _side(book, other), _model(book))
    third = len(why.curves[0]) // 3
    first, middle, last = (why.curves[0][i * third : (i + 1) * third] for i in range(3))
    assert middle.mean() > 5 * max(first.mean(), last.mean())
    # the similarity is a third of both songs; smoothing moves a little of it past the ends
    assert why.stages[-1].similarity == pytest.approx(1 / 3, abs=1e-3)
    assert why.curves[0].mean() == pytest.approx(1 / 3, rel=0.05)
    assert why.curves[1].mean() == pytest.approx(1 / 3, rel=0.1)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_passages_pair_up_without_overlap(seed):
    rng = np.random.default_rng(seed)
    book = _codebook()
    sides = []
    for _ in range(2):
        pieces = [(int(rng.integers(0, 8)), float(rng.uniform(0.3, 5))) for _ in range(12)]
        sides.append(_song(rng, book, [*pieces, (None, 3)]))
    why = explain_pair(_side(book, sides[0]), _side(book, sides[1]), _model(book))
    assert [p.slot for p in why.passages[0]] == [p.slot for p in why.passages[1]] == list(range(len(why.shared)))
    assert len(set(why.shared)) == len(why.shared) <= 6
    for frames, passages in zip(sides, why.passages, strict=True):
        ordered = sorted(passages, key=lambda p: p.start_s)
        assert all(p.start_s >= 0 and p.end_s <= len(frames) * FRAME_S + 1e-9 for p in ordered)
        assert all(1.0 <= p.end_s - p.start_s + FRAME_S <= 6.1 for p in ordered)
        assert all(p.end_s <= q.start_s + 1e-9 for p, q in pairwise(ordered))


def test_distances_before_and_after_learning_match_model(rng):
    book = _codebook()
    model = _model(book, rng.standard_normal((5, 24)))
    frames = [_song(rng, book, [(1, 2), (w, 2), (None, 2)]) for w in (2, 3)]
    sides = [_side(book, f) for f in frames]
    why = explain_pair(*sides, model)
    H = np.stack([side.histogram for side in sides])
    for vectors, (d, s) in zip((model.remove_metric().vectors(H), model.vectors(H)), why.stages, strict=True):
        # vectors are float32
        assert d == pytest.approx(np.linalg.norm(vectors[0] - vectors[1]), abs=1e-5)
        assert s == pytest.approx(ppk_similarity(d))


def test_identical_songs_have_no_differences(rng):
    book = _codebook()
    frames = _song(rng, book, [(1, 4), (2, 4)])
    why = explain_pair(_side(book, frames), _side(book, frames), _model(book))
    assert (why.stages, why.apart) == (((0.0, 1.0),), ())
    assert [(p.start_s, p.end_s) for p in why.passages[0]] == [(p.start_s, p.end_s) for p in why.passages[1]]


def test_song_without_frames_has_shares_but_no_passages(rng):
    book = _codebook()
    side = _side(book, _song(rng, book, [(1, 4), (2, 4)]))
    bare = Side(side.histogram, None, side.peaks, 8.0, "bare")
    why = explain_pair(side, bare, _model(book))
    assert why.passages == ((), ())
    assert (why.heard_s[1], len(why.curves[1])) == (0.0, 0)
    assert len(why.curves[0]) == 240
    assert why.shared == ()


def test_long_song_is_read_for_ten_minutes(rng):
    book = _codebook()
    block = _song(rng, book, [(1, 60)])
    n_read = 0

    def hours():
        nonlocal n_read
        for _ in range(180):
            n_read += 1
            yield block

    side = _side(book, block)
    endless = Side(side.histogram, hours(), side.peaks, 3 * 3600.0, "endless")
    why = explain_pair(side, endless, _model(book))
    assert why.heard_s[1] == pytest.approx(600, abs=FRAME_S)
    assert n_read == 10


def test_shared_tags_and_listeners_are_counted(rng):
    book = _codebook()
    frames = _song(rng, book, [(1, 4)])
    one = _side(book, frames, tags=("calm", "jazz", "loud"), listeners=frozenset("abc"))
    other = _side(book, frames, tags=("jazz", "soul", "calm"), listeners=frozenset("bcde"))
    nobody = _side(book, frames)
    why = explain_pair(one, other, _model(book))
    assert (why.tags, why.n_listeners, why.listeners_jaccard) == (("calm", "jazz"), 2, 2 / 5)
    assert explain_pair(_side(book, frames, listeners=frozenset("a")), nobody, _model(book)).listeners_jaccard is None


def test_model_without_codewords_gives_clear_error(rng):
    book = _codebook()
    side = _side(book, _song(rng, book, [(1, 4)]))
    model = _model(book)
    model.encoder_ = object()
    with pytest.raises(ModelError, match="cannot show which sounds"):
        explain_pair(side, side, model)


def test_codeword_bars_sum_to_similarity(rng):
    book = _codebook()
    sides = [_side(book, _song(rng, book, [(1, 4), (None, 6)])) for _ in range(2)]
    L = rng.standard_normal((5, 24))
    for model in (_model(book), _model(book, L)):
        why = explain_pair(*sides, model)
        shown = why.stages[-1].similarity
        assert max(0.0, similarity_of_parts(why.parts)) == pytest.approx(shown, abs=1e-6)
        named = [part for part in why.parts if part.words != REST]
        assert similarity_of_parts(named) >= 0.8 * similarity_of_parts(why.parts)
        assert len(named) == len({part.words for part in named}) <= 27
        sides = [_side(book, _song(rng, book, [(1, 4), (None, 6)])) for _ in range(2)]


# --- by groups of a Gaussian ----------------------------------------------------------------------


def test_every_pair_of_kinds_is_in_one_group():
    pairs = [frozenset(pair) for pairs in GROUPS.values() for pair in pairs]
    assert len(pairs) == len(set(pairs)) == 7 * 8 // 2


@given(seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_group_shares_sum_to_distance_and_similarity(seed):
    rng = np.random.default_rng(seed)
    n_features = SOUND_SIZES[seed % 2]  # of an older version, and of this one
    a, b, *sample = rng.standard_normal((12, n_features))
    L = 0.03 * rng.standard_normal((9, n_features))
    distance, similarity = group_shares(a, b, sample, L)
    d = np.linalg.norm(L @ (a - b))
    assert distance.sum() == pytest.approx(d**2)
    assert similarity.sum() == pytest.approx(1 - d**2 / 2)
    parts = largest_shares(list(GROUPS), [(distance, similarity)])
    assert similarity_of_parts(parts) == pytest.approx(1 - d**2 / 2)


@pytest.mark.parametrize("n_features", SOUND_SIZES)
def test_changed_feature_appears_in_its_group(rng, n_features):
    sample = rng.standard_normal((50, n_features))
    a = sample[0]
    where = {"how much the loudness varies": 0, "tone color": 40 + 38, "fast changes of tone color": 819 - 2}
    where |= {"rhythm and fluctuation": 820}
    if n_features > 820 + FLUCTUATION_SIZE:
        where["spectral shape"] = 820 + FLUCTUATION_SIZE
    for words, number in where.items():
        b = a.copy()
        b[number] += 3.0
        distance, similarity = group_shares(a, b, sample, np.eye(n_features))
        group = list(GROUPS).index(words)
        assert distance[group] == pytest.approx(9.0)
        assert np.abs(np.delete(distance, group)).max() < 1e-9
        assert np.argmin(similarity) == group


def test_sound_bars_sum_to_listed_similarity(snapshot):
    song = snapshot.library.songs()[0]
    for hit in find_similar(snapshot, song.id, 3, max_per_artist=None):
        _, _, why = explain_result(snapshot, song.id, hit.song.id)
        assert similarity_of(snapshot, song.id, hit.song.id) == pytest.approx(hit.similarity, abs=1e-5)
        (amounts,) = why.stages
        assert max(0.0, similarity_of_parts(why.parts)) == pytest.approx(amounts.similarity, abs=1e-5)
        assert similarity_of_parts(why.parts[:-1]) >= 0.8 * amounts.similarity
        assert why.shared, "what sounds alike where comes from the codewords"


# --- from a library ---------------------------------------------------------------------------


def test_result_is_explained_with_shown_similarity(snapshot):
    song = snapshot.library.songs()[0]
    for hit in find_similar(snapshot, song.id, 11, max_per_artist=None, hub_reduction=False):
        one, other, why = explain_result(snapshot, song.id, hit.song.id)
        # vectors are stored as float32, and near 1 the form 1 - d^2 / 2 loses half of their digits
        assert why.stages[-1].similarity == pytest.approx(hit.similarity, abs=1e-4)
        assert why.heard_s[0] == pytest.approx(song.duration_s, abs=0.1)
        assert (one.title, other.title) == (song.title, hit.song.title)


def test_side_histogram_matches_frames(snapshot):
    songs = snapshot.library.songs()
    side, _ = sides_of(snapshot, songs[3].id, songs[4].id)
    record = snapshot.library.models.codewords()
    codebook = SimilarityModel.load(snapshot.library.models.path(record.id)).encoder_.codebook
    found = np.concatenate([codebook.nearest(block) for block in side.frame_blocks])
    counted = np.bincount(found.ravel(), minlength=len(side.histogram)) / found.size
    np.testing.assert_allclose(counted, side.histogram, atol=1e-6)


def test_listeners_and_tags_come_from_library(tiny_library):
    one, other, third = (song.id for song in tiny_library.songs()[:3])
    heard = [("ann", one, 3), ("bob", one, 1), ("bob", other, 2), ("eve", other, 0)]
    tiny_library.add_plays([{"listener": who, "song_id": i, "count": n} for who, i, n in heard])
    tiny_library.add_tags([{"song_id": i, "tag": "calm", "weight": 9.0} for i in (one, other)])
    snapshot = take_snapshot(tiny_library)
    why = explain_result(snapshot, one, other)[2]
    assert (why.tags, why.n_listeners, why.listeners_jaccard) == (("calm",), 1, 0.5)
    assert explain_result(snapshot, one, third)[2].listeners_jaccard is None


def test_external_sound_is_explained_like_song(snapshot, tmp_path):
    data = write_song(tmp_path / "mine.flac", "noise", seed=77).read_bytes()
    example = read_example(snapshot, data, "mine.flac")
    for hit in find_similar(snapshot, example, 5, hub_reduction=False):
        one, _, why = explain_result(snapshot, example, hit.song.id)
        assert why.stages[-1].similarity == pytest.approx(hit.similarity, abs=1e-4)  # float32 vectors
        assert why.heard_s[0] == pytest.approx(example.duration_s, abs=0.1)
        assert (one.title, one.song_id, one.tags) == ("mine.flac", None, ())


def test_uploaded_library_song_has_tags_and_listeners(tiny_library):
    song, other = tiny_library.songs()[:2]
    tiny_library.add_plays([{"listener": "ann", "song_id": i, "count": 1} for i in (song.id, other.id)])
    snapshot = take_snapshot(tiny_library)
    example = read_example(snapshot, song.path.read_bytes(), "copy.flac")
    why = explain_result(snapshot, example, other.id)[2]
    assert (why.tags, why.n_listeners, why.listeners_jaccard) == ((song.genre,), 1, 1.0)


def test_song_without_stored_frames_has_no_passages(tiny_library):
    one, other = tiny_library.songs()[:2]
    tiny_library.frame_files.drop(other.content_hash)
    snapshot = take_snapshot(tiny_library)
    why = explain_result(snapshot, one.id, other.id)[2]
    assert why.passages == ((), ())
    assert why.heard_s[0] > 0 == why.heard_s[1]


def test_unknown_song_gives_clear_error(snapshot):
    with pytest.raises(NotFoundError, match="song 999 does not exist"):
        sides_of(snapshot, snapshot.library.songs()[0].id, 999)
