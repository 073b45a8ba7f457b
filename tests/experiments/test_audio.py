"""The experiment on audio: what a split may see, how songs are ranked, and a run on a small library."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from benchmarks.support.report import Settings
from experiments import audio
from experiments.codewords import measured_codewords, measured_tags
from experiments.support.audio import (
    GMML_LOCAL,
    GMML_ONE,
    LEARNED,
    PPK,
    SMD,
    TAGS,
    TFIDF,
    VQ,
    Protocol,
    Songs,
    Split,
    adjusted,
    codeword_vectors,
    codeword_vectors_by_tau,
    divergence_rows,
    effective_dimension,
    learned_distances,
    mean_distances,
    measure_others,
    mixtures,
    native_distances,
    tag_vectors,
)
from musicsim.evaluation import query_scores
from musicsim.evaluation.ranking import distance_scores
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.metric import GMML, MLR
from musicsim.mixtures import kl_divergences
from musicsim.relevance import Relevance
from musicsim.search import MutualProximity
from tests.metric import truth
from tests.sounds import open_library

TINY = Protocol(splits=2, Cs=(1.0, 30.0), tol=1e-2, max_cuts=20, codewords=(32,), taus=(2,), most_songs=None)
TRAIN, VALIDATION, TEST = np.arange(20), np.arange(20, 30), np.arange(30, 40)


@dataclass(frozen=True)
class HeldSongs(Songs):
    """Songs whose frames are in memory."""

    held: tuple[np.ndarray, ...] = ()

    def frames(self, rows):
        return (self.held[row] for row in rows)


def held_songs(rng, n=40, shift=0.0):
    """Songs of four kinds; those from row 20 on are shifted. Every fourth song has the tag of its kind."""
    frames = [rng.normal(size=(60, 39)) + i % 4 for i in range(n)]
    frames = [f + shift * (i >= 20) for i, f in enumerate(frames)]
    tags = tuple([f"kind {i % 4}", "only later" if i >= 20 else "only in training"] for i in range(n))
    return HeldSongs(Path(), tuple(range(n)), np.arange(n), tags, tuple(frames))


def split_of_kinds(n=40):
    """20 : 10 : 10 rows; songs of one kind are relevant to each other, k stands for nothing."""
    relevance = Relevance.from_labels(np.arange(n) % 4)
    parts = TRAIN, VALIDATION, TEST
    return Split(0, *parts, {3: tuple(relevance.restrict(part, TRAIN) for part in parts)})


# --- distances of whatever kind -----------------------------------------------------------------------------


def test_unit_rows_rank_by_cosine(rng):
    X = rng.random((12, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[5] = 0
    train = np.arange(2, 9)
    D = native_distances(TAGS, X, train)
    np.testing.assert_allclose(1 - D**2 / 2, X @ X[train].T, atol=1e-12)
    others = np.delete(np.arange(12), 5)
    np.testing.assert_allclose(D[others][:, train != 5], cdist(X[others], X[train[train != 5]]), atol=1e-7)
    np.testing.assert_allclose(D[5], np.sqrt(2), rtol=1e-12)


def test_raw_histograms_rank_by_euclidean_distance(rng):
    X = rng.dirichlet(np.ones(5), 8)
    np.testing.assert_allclose(native_distances(VQ, X, np.arange(3)), cdist(X, X[:3]))


def test_matrix_mutual_proximity_matches_index(rng):
    X = rng.normal(size=(40, 5))
    split = split_of_kinds()
    judge = MutualProximity(n_sample=len(TRAIN)).fit(X[TRAIN])
    D = cdist(X, X[TRAIN])
    found = adjusted(D, split, TEST)
    for row, q in zip(found, TEST, strict=True):
        moments = judge.moments(X[q : q + 1])
        # the index takes the distances' squares from a product: some digits are lost
        np.testing.assert_allclose(row, judge.rescore(D[q], np.arange(len(TRAIN)), moments), rtol=1e-6)


# --- nothing of validation or test is trained on --------------------------------------------------------------


def test_codewords_and_rarity_use_training_songs_only():
    plain, moved = (held_songs(np.random.default_rng(1), shift=shift) for shift in (0.0, 3.0))
    for name in (VQ, TFIDF, PPK):
        a, b = (codeword_vectors(songs, TRAIN, 32, 2, 0)[name] for songs in (plain, moved))
        np.testing.assert_array_equal(a[TRAIN], b[TRAIN])
        assert not np.array_equal(a[TEST], b[TEST])


def test_tags_and_mixtures_use_training_songs_only():
    plain, moved = (held_songs(np.random.default_rng(1), shift=shift) for shift in (0.0, 3.0))
    a, b = (tag_vectors(songs, TRAIN, 0) for songs in (plain, moved))
    np.testing.assert_array_equal(a[SMD][TRAIN], b[SMD][TRAIN])
    assert not np.array_equal(a[SMD][TEST], b[SMD][TEST])
    assert a[TAGS].shape == (40, 5)  # no training song has the word "only later"
    np.testing.assert_allclose(a[TAGS][TEST].max(axis=1), 1.0)


def test_few_tags_give_no_multinomials():
    songs = held_songs(np.random.default_rng(1))
    few = tuple(["rare"] if i < 4 else [] for i in range(40))
    assert list(tag_vectors(replace(songs, tags=few), TRAIN, 0)) == [TAGS]
    one = tuple(["common"] for _ in range(40))
    assert list(tag_vectors(replace(songs, tags=one), TRAIN, 0)) == [TAGS], "a single tag tells no songs apart"
    assert tag_vectors(replace(songs, tags=tuple([] for _ in few)), TRAIN, 0) == {}


def test_learned_metric_ignores_test_songs(rng):
    X = rng.normal(size=(40, 6)) + np.arange(40)[:, None] % 4 * [1, 0, 0, 0, 0, 0]
    moved = X.copy()
    moved[TEST] += 5
    split = split_of_kinds()
    a, b = (learned_distances(songs, split, 3, "trace", TINY) for songs in (X, moved))
    assert a[1:] == b[1:]
    np.testing.assert_array_equal(a[0][:30], b[0][:30])


def metric_from_distances(D, Z):
    """Solve for the symmetric W whose distances ((z_i - z_j)' W (z_i - z_j))^.5 are D."""
    pairs = (Z[:, None] - Z[None]).reshape(-1, Z.shape[1])
    W = np.linalg.lstsq(np.einsum("pi,pj->pij", pairs, pairs).reshape(len(pairs), -1), D.ravel() ** 2)[0]
    return W.reshape(Z.shape[1], -1)


@pytest.mark.parametrize("regularizer", ["trace", "l21"])
def test_selects_best_c_by_validation(rng, regularizer):
    X = rng.normal(size=(40, 6)) + np.arange(40)[:, None] % 4 * [1, 0, 0, 0, 0, 0]
    split, tol = split_of_kinds(), 1e-6
    relevance, validation, _ = split.relevance[3]
    D, chosen, gap = learned_distances(X, split, 3, regularizer, replace(TINY, tol=tol, max_cuts=500))
    pca = PCA(0.95, svd_solver="full").fit(X[TRAIN])
    Z = pca.transform(X) / np.sqrt(pca.transform(X[TRAIN]).var(axis=0, ddof=1).sum())
    path = MLR(tol=tol, max_cuts=500, regularizer=regularizer).fit_path(Z[TRAIN], relevance, TINY.Cs)
    aucs = [query_scores(m.transform(Z[VALIDATION]), m.transform(Z[TRAIN]), validation)["auc"].mean() for m in path]
    best = path[int(np.argmax(aucs))]
    # ten pairs of 750 apart; a metric within the tolerance of the optimum swaps one or two
    assert max(aucs) - min(aucs) > 0.012
    assert chosen == f"C {best.C:g}"
    assert gap <= tol
    # Fits to the same tolerance may end at different metrics. Only their objectives are close.
    W = metric_from_distances(D[TRAIN], Z[TRAIN])
    found = truth.objective(Z[TRAIN], relevance, W, "auc", 10, best.C, regularizer)
    assert best.dual_bound_ * (1 - 1e-9) <= found <= best.objective_ * (1 + 2 * tol)
    pairs = Z[:, None] - Z[TRAIN]
    squares = np.einsum("ijk,kl,ijl->ij", pairs, W, pairs)
    np.testing.assert_allclose(D**2, squares, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("learning", [GMML_ONE, GMML_LOCAL])
def test_geometric_means_ignore_test_songs(rng, learning):
    X = rng.normal(size=(40, 6)) + np.arange(40)[:, None] % 4 * [1, 0, 0, 0, 0, 0]
    moved = X.copy()
    moved[TEST] += 5
    (a, chosen), (b, same) = (mean_distances(songs, split_of_kinds(), 3, learning) for songs in (X, moved))
    assert chosen == same
    np.testing.assert_array_equal(a[TRAIN], b[TRAIN])
    # products of matrices of other sizes round elsewhere
    np.testing.assert_allclose(a[VALIDATION], b[VALIDATION], rtol=1e-6)


def test_selects_best_prior_by_validation(rng):
    X = rng.normal(size=(40, 6)) + np.arange(40)[:, None] % 4 * [1, 0, 0, 0, 0, 0]
    split = split_of_kinds()
    D, chosen = mean_distances(X, split, 3, GMML_ONE)
    pca = PCA(0.95, svd_solver="full").fit(X[TRAIN])
    Z = pca.transform(X) / np.sqrt(pca.transform(X[TRAIN]).var(axis=0, ddof=1).sum())
    fits = {
        f"t {t:g}, reg {reg:g}": GMML(t=t, reg=reg).fit(Z[TRAIN], split.relevance[3][0])
        for t in (0.0, 0.25, 0.5)
        for reg in (0.01, 0.1, 1.0)
    }
    aucs = {
        setting: query_scores(m.transform(Z[VALIDATION]), m.transform(Z[TRAIN]), split.relevance[3][1])["auc"].mean()
        for setting, m in fits.items()
    }
    assert chosen == max(aucs, key=aucs.__getitem__)
    best = fits[chosen]
    np.testing.assert_allclose(D, cdist(best.transform(Z), best.transform(Z[TRAIN])), rtol=1e-6, atol=1e-9)


def test_divergence_ranking_matches_matrix():
    songs = held_songs(np.random.default_rng(1))
    every = mixtures(songs, range(40), 0)
    D = divergence_rows(every, every, 0)
    np.testing.assert_allclose(D[TEST][:, TRAIN], kl_divergences(every[TEST], every[TRAIN], 2048, 0), rtol=1e-5)
    split = split_of_kinds()
    results = measure_others(songs, split, every, D[:, TRAIN], TINY, 0)
    (plain,) = [r for r in results if r.representation == "GMM-KL" and not r.proximity]
    expected = distance_scores(D[TEST][:, TRAIN], split.relevance[3][2])
    np.testing.assert_array_equal(plain.scores["auc"], expected["auc"])
    assert {(r.representation, r.learning) for r in results} == {
        ("GMM-KL", "native"),
        *((name, how) for name in ("GMM space", SMD, TAGS) for how in ("native", *LEARNED)),
    }


# --- the whole -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "ks"), [(24, (3, 10)), (39, (4, 10)), (40, (10,)), (806, (10,)), (11, (1, 10)), (10, (1,))]
)
def test_similar_artist_count_depends_on_collection_size(n, ks):
    assert audio.similar_artists(n) == ks


def test_relevance_follows_shared_listeners_of_artists(heard_library):
    with Library.open(heard_library) as library:
        snapshot = take_snapshot(library)
        rows = audio.chosen_songs(snapshot, None, 0)
        songs, splits = audio.splits_of(snapshot, rows, 2, 0)
        plays = library.plays()
    counts = np.zeros((len(plays.listeners), 15))
    artist_of = dict(zip(songs.ids, songs.artists, strict=True))
    for listener, song_id, count in zip(plays.listener, plays.song_id, plays.count, strict=True):
        counts[listener, artist_of[int(song_id)]] += count
    heard = counts >= audio.THRESHOLD
    for split in splits:
        parts = split.train, split.validation, split.test
        assert not set.intersection(*(set(songs.artists[part]) for part in parts))
        assert sum(len(part) for part in parts) == len(songs.ids) == len(set(np.concatenate(parts)))
        training = np.unique(songs.artists[split.train])
        for k, judged in split.relevance.items():
            for part, relevance in zip(parts, judged, strict=True):
                for q, row in enumerate(part):
                    own = heard[:, songs.artists[row]]
                    jaccard = np.array(
                        [
                            -1.0 if a == songs.artists[row] else (own & heard[:, a]).sum() / (own | heard[:, a]).sum()
                            for a in training
                        ]
                    )
                    similar = training[np.argsort(-jaccard, kind="stable")[:k]]
                    similar = similar[np.sort(-jaccard)[:k] < 0]
                    expected = np.flatnonzero(np.isin(songs.artists[split.train], similar))
                    np.testing.assert_array_equal(relevance.relevant(q), expected)


def test_shuffled_plays_relate_artists_of_other_kinds(heard_library):
    with Library.open(heard_library) as library:
        snapshot = take_snapshot(library)
        rows = audio.chosen_songs(snapshot, None, 0)
        splits = audio.splits_of(snapshot, rows, 2, 0, n_shuffles=5)[1]
        plain = audio.splits_of(snapshot, rows, 2, 0)[1]
        kinds = np.array([int(song.artist.split()[1]) % 3 for song in snapshot.songs_at(rows)])
    assert plain[0].plays == {}
    for split, without in zip(splits, plain, strict=True):
        assert split.plays.keys() == split.relevance.keys()
        for k, (real, *copies) in split.plays.items():
            assert len(copies) == 5
            same = []
            for whole in (real, *copies):
                found = [(row, other) for row in split.test for other in whole.restrict([row]).relevant(0)]
                assert {other for _, other in found} <= set(split.train)
                same.append(np.mean([kinds[row] == kinds[other] for row, other in found]))
            assert same[0] == 1.0
            assert np.mean(same[1:]) < 0.8
            for mine, other in zip(split.relevance[k], without.relevance[k], strict=True):
                np.testing.assert_array_equal(mine.judgments(range(len(mine))), other.judgments(range(len(other))))


def test_large_library_is_sampled_by_artist(heard_library):
    with Library.open(heard_library) as library:
        snapshot = take_snapshot(library)
        rows = audio.chosen_songs(snapshot, 9, 0)
        groups = [snapshot.songs_at([row])[0].group for row in rows]
    assert len(rows) == 8
    assert {groups.count(name) for name in groups} == {2}


def test_library_without_songs_gives_clear_error(tmp_path):
    with open_library(tmp_path / "empty"):
        pass
    with pytest.raises(SystemExit, match="empty: no song"):
        audio.run(Settings(library=tmp_path / "empty"), lambda line: None)


# --- codebooks and tau --------------------------------------------------------------------------------------


def test_effective_dimension_counts_pca_components(rng):
    X = rng.normal(size=(50, 8)) * np.array([5, 3, 2, 1, 1, 0.5, 0.1, 0.1])
    assert effective_dimension(X) == PCA(0.95, svd_solver="full").fit(X).n_components_


def test_one_codebook_serves_every_tau(rng):
    songs = held_songs(rng)
    together = codeword_vectors_by_tau(songs, TRAIN, 32, (1, 2), 0)
    for tau, found in zip((1, 2), together, strict=True):
        alone = codeword_vectors(songs, TRAIN, 32, tau, 0)
        for name, X in found.items():
            np.testing.assert_array_equal(X, alone[name])


def test_codebook_grid_ranks_distinct_sounds(rng):
    songs, split = held_songs(rng), split_of_kinds()
    protocol = replace(TINY, taus=(1, 2))
    found = measured_codewords(songs, split, 3, 32, protocol, 0)
    assert [one["codewords"] for one in found] == [16, 16]  # 1,200 frames
    for one in found:
        assert one[PPK] > 0.9
        assert one["PPK, MLR"] > 0.9
        assert 1 <= one["dimensions"] < 16
    tags = measured_tags(songs, split, 3, 0)
    assert tags == pytest.approx({TAGS: 1.0, f"{TAGS}, {TFIDF}": 1.0}, abs=0.3)
