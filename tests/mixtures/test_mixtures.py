"""Tests of mixtures of songs and tags against scikit-learn, scipy and closed forms."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import spearmanr
from sklearn.mixture import GaussianMixture

from musicsim.mixtures import (
    MixtureSpace,
    SemanticMultinomials,
    SongMixtures,
    cross_entropy,
    fit_mixtures,
    kl_divergences,
)
from musicsim.mixtures.divergence import _compute_samples, _draw_randoms
from musicsim.mixtures.kernels import mean_log_sums


def song_of(rng, n_frames=600, d=6, place=0.0, n_groups=4):
    """Return frames around some centers, with feature scales as different as those of MFCC."""
    centres = place + 2.0 * rng.normal(size=(n_groups, d))
    frames = centres[rng.integers(n_groups, size=n_frames)] + rng.normal(size=(n_frames, d))
    return (frames * np.geomspace(30.0, 0.3, d)).astype(np.float32)


def mixtures_of(rng, n, c=3, d=5, spread=1.0):
    return SongMixtures(
        rng.dirichlet(np.full(c, 2.0), n) * 0.97 + 0.01,
        spread * rng.normal(size=(n, c, d)),
        rng.gamma(2.0, 0.5, (n, c, d)) + 0.2,
    )


def as_scikit(mixtures, i):
    judge = GaussianMixture(mixtures.weights.shape[1], covariance_type="diag")
    judge.weights_, judge.means_ = mixtures.weights[i].astype(float), mixtures.means[i].astype(float)
    judge.covariances_ = mixtures.variances[i].astype(float)
    judge.precisions_cholesky_ = 1.0 / np.sqrt(judge.covariances_)
    return judge


# --- fitting ---


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_likelihood_matches_or_beats_scikit_learn(rng):
    songs = [song_of(rng, n_groups=12) for _ in range(12)]
    fitted = fit_mixtures(songs, n_components=8, random_state=0)
    ours = [as_scikit(fitted, i).score(song) for i, song in enumerate(songs)]
    judges = [GaussianMixture(8, covariance_type="diag", random_state=0).fit(song.astype(float)) for song in songs]
    theirs = [judge.score(song) for judge, song in zip(judges, songs, strict=True)]
    # Both end in a local maximum, so only the mean over songs is comparable. Two seeds of scikit-learn differ by 0.04.
    assert np.mean(ours) > np.mean(theirs) - 0.05


def test_one_component_matches_mean_and_variance(rng):
    song = song_of(rng)
    fitted = fit_mixtures([song], n_components=1, random_state=0)
    # the prior of a thousandth of a frame has the same mean and variance; the rest is float32
    np.testing.assert_allclose(fitted.means[0, 0], song.mean(axis=0, dtype=float), rtol=1e-5)
    np.testing.assert_allclose(fitted.variances[0, 0], song.var(axis=0, dtype=float), rtol=1e-5)
    np.testing.assert_array_equal(fitted.weights, 1.0)


def test_finds_separated_groups(rng):
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    group = np.repeat([0, 1, 2], [200, 300, 500])
    song = centres[group] + rng.normal(size=(1000, 2))
    fitted = fit_mixtures([song], n_components=3, random_state=1)
    order = np.argsort(fitted.weights[0])
    for place, g in zip(order, range(3), strict=True):
        np.testing.assert_allclose(fitted.weights[0, place], (group == g).mean(), rtol=1e-4)
        np.testing.assert_allclose(fitted.means[0, place], song[group == g].mean(axis=0), atol=0.01)
        np.testing.assert_allclose(fitted.variances[0, place], song[group == g].var(axis=0), rtol=0.01)


@pytest.mark.parametrize(
    "song",
    [
        np.zeros((300, 5)),
        np.full((300, 5), -531.25),
        np.full((1, 5), 3.0),
        np.arange(15.0).reshape(3, 5),
        np.repeat([[0.0] * 5, [1.0] * 5], 40, axis=0),
        np.c_[np.zeros((50, 4)), np.arange(50.0)],
    ],
    ids=["silence", "constant", "one frame", "three frames", "two values", "constant features"],
)
def test_zero_variance_songs_give_no_nan(rng, song):
    fitted = fit_mixtures([song, song_of(rng, d=5)], n_components=8, random_state=0)
    assert fitted.variances.min() >= np.float32(1e-3)
    np.testing.assert_allclose(fitted.weights.sum(axis=1), 1.0, rtol=1e-6)
    divergence = kl_divergences(fitted, fitted, n_samples=64, random_state=0)
    assert np.isfinite(divergence).all()
    assert divergence[0, 1] > 1.0
    np.testing.assert_array_equal(np.diagonal(divergence), 0.0)


def test_songs_are_fitted_independently_and_in_blocks(rng):
    songs = [song_of(rng), song_of(rng)]
    together = fit_mixtures(songs, 4, max_frames=200, random_state=7)
    alone = fit_mixtures((iter([s[:100], s[100:]]) for s in songs[1:]), 4, max_frames=200, random_state=7)
    for name, array in alone.arrays().items():
        np.testing.assert_array_equal(array[0], together.arrays()[name][1])
    other = fit_mixtures(songs, 4, max_frames=200, random_state=8)
    assert not np.array_equal(other.means, together.means)


@pytest.mark.parametrize(
    ("songs", "options", "message"),
    [
        ([], {}, "list_of_frames is empty"),
        ([np.zeros((3, 2)), np.zeros((0, 2))], {}, "song 1 are empty"),
        ([iter([])], {}, "song 0 must be an array"),
        ([np.zeros(3)], {}, "song 0 must be an array"),
        ([np.full((3, 2), np.nan)], {}, "song 0: the values contain NaN"),
        ([np.zeros((3, 2))], {"n_components": 0}, "n_components=0"),
        ([np.zeros((3, 2))], {"max_frames": 0}, "max_frames=0"),
    ],
)
def test_rejects_unusable_songs(songs, options, message):
    with pytest.raises(ValueError, match=message):
        fit_mixtures(songs, **options)


# --- stacks of mixtures ---


def test_mixtures_can_be_saved_and_stacked(rng, tmp_path):
    mixtures = mixtures_of(rng, 5)
    np.savez(tmp_path / "mixtures.npz", **mixtures.arrays())
    with np.load(tmp_path / "mixtures.npz", allow_pickle=False) as stored:
        read = SongMixtures.from_arrays(stored)
    again = SongMixtures.concatenate([read[:2], read[[2]], read[np.arange(5) > 2]])
    assert len(again) == 5
    for name, array in mixtures.arrays().items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(again.arrays()[name], array)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones((2, 3))}, r"means has shape .* and weights has shape"),
        ({"variances": np.ones((2, 2, 5))}, "but means has shape"),
        ({"variances": np.zeros((2, 2, 4))}, "above 0"),
        ({"means": np.full((2, 2, 4), np.inf)}, "means of the mixtures contain NaN or infinity"),
    ],
)
def test_rejects_invalid_mixture_arrays(change, message):
    arrays = {"weights": np.full((2, 2), 0.5), "means": np.zeros((2, 2, 4)), "variances": np.ones((2, 2, 4))}
    with pytest.raises(ValueError, match=message):
        SongMixtures(**(arrays | change))


def test_rejects_stacking_incompatible_mixtures(rng):
    with pytest.raises(ValueError, match="must have equal numbers"):
        SongMixtures.concatenate([mixtures_of(rng, 1), mixtures_of(rng, 1, c=2)])


# --- divergence ---


def draw_samples(mixtures, n_samples, random_state):
    randoms = _draw_randoms(n_samples, mixtures.means.shape[2], random_state)
    return np.stack([_compute_samples(mixtures, i, *randoms) for i in range(len(mixtures))])


def test_samples_match_mixture_moments(rng):
    mixtures = mixtures_of(rng, 2)
    samples = draw_samples(mixtures, 200_000, random_state=0)
    for i in range(2):
        w, m, v = (mixtures.arrays()[name][i].astype(float) for name in ("weights", "means", "variances"))
        w = w / w.sum()
        mean = w @ m
        variance = w @ (v + m**2) - mean**2
        # 4.5 deviations of the mean of 200,000 draws; the variance to 2 %
        np.testing.assert_allclose(samples[i].mean(axis=0), mean, atol=4.5 * np.sqrt(variance.max() / 2e5))
        np.testing.assert_allclose(samples[i].var(axis=0), variance, rtol=0.02)


def test_cross_entropy_matches_scikit_learn(rng):
    mixtures = mixtures_of(rng, 7)
    frames = rng.normal(size=(300, 5)) * 3.0 + 20.0
    expected = [-as_scikit(mixtures, i).score(frames) for i in range(7)]
    np.testing.assert_allclose(cross_entropy(frames, mixtures), expected, rtol=2e-6)  # float32


def test_mean_log_sums_match_scipy(rng):
    for size in (1.0, 30.0, 1e4):
        products = (size * rng.normal(size=(3, 4, 1300))).astype(np.float32)
        offsets = rng.normal(size=(3, 4)).astype(np.float32)
        expected = logsumexp(products.astype(float) + offsets[:, :, None], axis=1).mean(axis=1)
        result = np.empty(3)
        mean_log_sums(products, offsets, result)
        np.testing.assert_allclose(result, expected, atol=3e-7 * size)


def test_divergence_of_single_gaussians_matches_closed_form(rng):
    single = mixtures_of(rng, 6, c=1)
    m, v = single.means[:, 0].astype(float), single.variances[:, 0].astype(float)
    estimate = kl_divergences(single, single, n_samples=4096, random_state=5)
    samples = draw_samples(single, 4096, random_state=5)
    for p in range(6):
        for q in range(6):
            exact = 0.5 * np.sum(np.log(v[q] / v[p]) + (v[p] + (m[p] - m[q]) ** 2) / v[q] - 1.0)
            ratio = as_scikit(single, p).score_samples(samples[p]) - as_scikit(single, q).score_samples(samples[p])
            error = ratio.std() / np.sqrt(4096)
            assert abs(estimate[p, q] - exact) <= 4.5 * error + 1e-5


def test_divergence_is_mean_log_ratio_of_samples(rng):
    queries, database = mixtures_of(rng, 3), mixtures_of(rng, 5)
    samples = draw_samples(queries, 128, random_state=2)
    expected = [
        [as_scikit(queries, i).score(samples[i]) - as_scikit(database, j).score(samples[i]) for j in range(5)]
        for i in range(3)
    ]
    got = kl_divergences(queries, database, n_samples=128, random_state=2)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_divergence_rows_are_independent_of_blocks(rng, monkeypatch):
    queries, database = mixtures_of(rng, 4), mixtures_of(rng, 30)
    whole = kl_divergences(queries, database, n_samples=200, random_state=3)
    monkeypatch.setattr("musicsim.mixtures.divergence.BLOCK_ENTRIES", 3 * 200 * 4)
    part = kl_divergences(queries[[3, 1]], database, n_samples=200, random_state=3)
    np.testing.assert_allclose(part, whole[[3, 1]], atol=1e-5)  # float32 products in another order


def test_divergence_rejects_bad_input(rng):
    mixtures = mixtures_of(rng, 2)
    with pytest.raises(ValueError, match="5 features, but database has 4"):
        kl_divergences(mixtures, mixtures_of(rng, 2, d=4))
    with pytest.raises(ValueError, match="n_samples=0"):
        kl_divergences(mixtures, mixtures, n_samples=0)
    with pytest.raises(ValueError, match=r"\(n_samples, 5\)"):
        cross_entropy(np.zeros((3, 4)), mixtures)


# --- vectors ---


def rank_correlation(vectors, divergence):
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    off = ~np.eye(len(vectors), dtype=bool)
    return np.mean([spearmanr(distances[i, off[i]], divergence[i, off[i]])[0] for i in range(len(vectors))])


@pytest.fixture(name="crowd")
def crowd_of_songs(rng):
    """Return mixtures around a few styles, like those of songs."""
    styles = 2.0 * rng.normal(size=(6, 1, 5))
    means = styles[rng.integers(6, size=120)] + rng.normal(size=(120, 3, 5))
    return SongMixtures(np.full((120, 3), 1 / 3), means, rng.gamma(4.0, 0.25, (120, 3, 5)) + 0.2)


def test_space_distances_follow_divergence(crowd):
    divergence = kl_divergences(crowd, crowd, n_samples=512, random_state=9)
    divergence = divergence + divergence.T
    all_songs = MixtureSpace(random_state=0).fit_transform(crowd)
    assert all_songs.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(all_songs, axis=1), 1.0, rtol=1e-6)
    assert rank_correlation(all_songs, divergence) > 0.95
    few = MixtureSpace(n_landmarks=40, random_state=0).fit(crowd).transform(crowd)
    assert rank_correlation(few, divergence) > 0.8


def test_equal_songs_and_silence_have_valid_vectors(crowd):
    space = MixtureSpace(n_landmarks=30, n_samples=64, random_state=0).fit(crowd)
    silence = SongMixtures(np.full((1, 3), 1 / 3), np.full((1, 3, 5), -500.0), np.full((1, 3, 5), 1e-3))
    vectors = space.transform(SongMixtures.concatenate([crowd[[4, 4]], silence]))
    np.testing.assert_array_equal(vectors[0], vectors[1])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-6)
    same = MixtureSpace(random_state=0).fit(crowd[[1, 1, 1]])
    assert same.gamma_ > 0.0
    assert np.isfinite(same.transform(crowd)).all()


def test_space_can_be_saved(crowd, tmp_path):
    space = MixtureSpace(n_landmarks=20, n_samples=64, random_state=3).fit(crowd)
    np.savez(tmp_path / "space.npz", **space.arrays())
    with np.load(tmp_path / "space.npz", allow_pickle=False) as stored:
        read = MixtureSpace.from_arrays(stored, **space.get_params())
    np.testing.assert_array_equal(read.transform(crowd[:5]), space.transform(crowd[:5]))


def test_space_rejects_bad_input(crowd):
    with pytest.raises(ValueError, match="n_landmarks=0"):
        MixtureSpace(n_landmarks=0).fit(crowd)
    with pytest.raises(ValueError, match="mixtures is empty"):
        MixtureSpace().fit(crowd[:0])


# --- tags ---


@pytest.fixture(name="tagged")
def tagged_songs(rng):
    """Return songs of three sounds, with tags by sound, a tag independent of sound, and rare tags."""
    places = 1.5 * rng.normal(size=(3, 6))
    sounds = np.arange(36) % 3
    songs = [(places[s] + rng.normal(size=(200, 6))).astype(np.float32) * 7.0 + 3.0 for s in sounds]
    tags = [[f"sound {s}", f"sound {s}", "any"] + ([f"rare {i}"] if i < 4 else []) for i, s in enumerate(sounds)]
    return songs, tags, sounds


def test_multinomials_match_geometric_mean_of_likelihoods(tagged):
    songs, tags, _ = tagged
    model = SemanticMultinomials(n_components=3, random_state=0).fit(songs, tags)
    shares = model.transform(songs[:4])
    assert shares.dtype == np.float32
    for song, share in zip(songs[:4], shares, strict=True):
        z = (song - model.mean_) / model.scale_
        mean_log = [as_scikit(model.mixtures_, t).score(z) for t in range(len(model.tags_))]
        expected = np.exp(mean_log) / np.exp(mean_log).sum()
        np.testing.assert_allclose(share, expected, rtol=1e-4)  # float32 log-densities of about 10
        assert share.sum() == pytest.approx(1.0, abs=1e-6)


def test_multinomials_distinguish_sounds(tagged):
    songs, tags, sounds = tagged
    model = SemanticMultinomials(n_components=2, min_songs=5, random_state=0).fit(songs[:24], tags[:24])
    assert model.tags_ == ["any", "sound 0", "sound 1", "sound 2"]
    np.testing.assert_allclose(model.mean_, np.concatenate(songs[:24]).mean(axis=0), rtol=1e-4)
    assert (model.transform(songs[24:])[:, 1:].argmax(axis=1) == sounds[24:]).all()


def test_vocabulary_is_limited_to_max_tags(tagged):
    songs, tags, _ = tagged
    fit = SemanticMultinomials(n_components=1, min_songs=1, max_tags=5, random_state=0).fit
    assert fit(songs, tags).tags_ == ["any", "sound 0", "sound 1", "sound 2", "rare 0"]


def test_song_blocks_match_whole_song(tagged):
    songs, tags, _ = tagged
    whole = SemanticMultinomials(n_components=2, random_state=4).fit(songs, tags)
    blocks = SemanticMultinomials(n_components=2, random_state=4).fit((iter([s[:50], s[50:]]) for s in songs), tags)
    np.testing.assert_array_equal(whole.mixtures_.means, blocks.mixtures_.means)
    rows = blocks.transform(iter([s[:9], s[9:]]) for s in songs[:3])
    np.testing.assert_allclose(rows, whole.transform(songs[:3]), rtol=1e-5)


def test_long_distant_song_does_not_underflow(tagged):
    songs, tags, _ = tagged
    model = SemanticMultinomials(n_components=2, random_state=0).fit(songs, tags)
    row = model.transform([np.full((5000, 6), 1e4)])[0]
    assert np.isfinite(row).all()
    assert row.sum() == pytest.approx(1.0, abs=1e-6)


def test_tag_model_can_be_saved(tagged, tmp_path):
    songs, tags, _ = tagged
    model = SemanticMultinomials(n_components=2, random_state=0).fit(songs, tags)
    np.savez(tmp_path / "tags.npz", **model.arrays())
    with np.load(tmp_path / "tags.npz", allow_pickle=False) as stored:
        read = SemanticMultinomials.from_arrays(stored, **model.get_params())
    assert read.tags_ == model.tags_
    np.testing.assert_array_equal(read.transform(songs[:3]), model.transform(songs[:3]))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, songs, tags: m.fit(songs, tags[:-1]), "36 songs, but list_of_tag_lists has 35"),
        (lambda m, songs, tags: m.fit(songs[:-1], tags), "35 songs, but list_of_tag_lists has 36"),
        (lambda m, songs, tags: m.fit(songs, [["x"]] + [[]] * 35), "no tag has min_songs=5"),
        (lambda m, songs, tags: m.fit([songs[0][:, :3], *songs[1:]], tags), r"numbers of features: \[3, 6\]"),
        (lambda m, songs, tags: m.fit(songs, tags).transform([songs[0], songs[0][:0]]), "song 1 are empty"),
        (lambda m, songs, tags: m.fit(songs, tags).transform([songs[0][:, :3]]), r"song 0: the shape is \(200, 3\)"),
        (lambda m, songs, tags: m.fit(songs, tags).transform([songs[0] * np.nan]), "song 0: the values contain NaN"),
        (lambda m, songs, tags: m.set_params(max_tags=0).fit(songs, tags), "max_tags=0"),
    ],
)
def test_rejects_mismatched_songs_and_tags(tagged, act, message):
    songs, tags, _ = tagged
    with pytest.raises(ValueError, match=message):
        act(SemanticMultinomials(n_components=1, random_state=0), songs, tags)


def test_array_is_refused_with_name_of_right_function():
    X = np.zeros((5, 39))
    with pytest.raises(TypeError, match="mixtures is a ndarray; pass SongMixtures, which fit_mixtures computes"):
        MixtureSpace().fit(X)


@pytest.mark.parametrize("tags", [["rock", "jazz"], np.array([0, 1])])
def test_labels_are_refused_as_tags(tags):
    with pytest.raises(TypeError, match=r"the tags of song 0 are .*: pass a list of tags for each song"):
        SemanticMultinomials().fit([np.zeros((20, 3))] * 2, tags)
