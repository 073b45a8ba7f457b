"""Tests of the codebook against plain numpy versions of algorithm B.1 and equation 5.5."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from musicsim.codebook import Codebook, suggest_n_codewords


def hartigan_twin(points, n_codewords, centroids=None, counts=None):
    """Run algorithm B.1 as printed, in float64, one frame at a time."""
    centroids = np.zeros((n_codewords, points.shape[1])) if centroids is None else centroids.copy()
    counts = np.zeros(n_codewords, dtype=np.int64) if counts is None else counts.copy()
    for x in points:
        i = np.argmin(counts / (counts + 1) * ((centroids - x) ** 2).sum(axis=1))
        centroids[i] = counts[i] / (counts[i] + 1) * centroids[i] + x / (counts[i] + 1)
        counts[i] += 1
    return centroids, counts


def histogram_twin(points, codewords, tau):
    """Evaluate equation 5.5 in float64, where a stable sort of all distances breaks ties by lower index."""
    distances = ((points[:, np.newaxis] - codewords) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :tau]
    return np.bincount(nearest.ravel(), minlength=len(codewords)) / (tau * len(points))


def z_scored(codebook, frames):
    return (frames - codebook.mean_) / codebook.scale_


def quantization_error(codebook, frames):
    """Return the mean squared distance of z-scored frames to their nearest codewords."""
    codewords, points = codebook.codewords_.astype(np.float64), z_scored(codebook, frames)
    return np.mean([np.square(codewords - x).sum(axis=1).min() for x in points])


def made_of(codewords, tau, counts=None):
    """Return a codebook with given codewords and without scaling of frames."""
    codewords = np.asarray(codewords, dtype=np.float64)
    n_codewords, n_features = codewords.shape
    codebook = Codebook(n_codewords, tau=tau)
    codebook.codewords_ = codewords
    codebook.counts_ = np.ones(n_codewords, dtype=np.int64) if counts is None else np.asarray(counts)
    codebook.mean_, codebook.scale_ = np.zeros(n_features), np.ones(n_features)
    codebook.n_features_in_ = n_features
    return codebook


def music_like(rng, n_frames, n_features=39, n_sounds=40):
    """Return frames that stay near sounds and drift, with an offset and unequal deviations."""
    sounds = rng.normal(size=(n_sounds, n_features)) * 2
    frames = np.repeat(sounds[rng.integers(n_sounds, size=-(-n_frames // 20))], 20, axis=0)[:n_frames]
    frames = frames + rng.normal(size=frames.shape)
    return (frames * np.geomspace(80, 0.5, n_features) - 30).astype(np.float32)


@pytest.fixture(name="rng")
def fixture_rng():
    return np.random.default_rng(20)


# --- fitting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_frames", "n_features", "n_codewords"),
    [(1500, 39, 64), (1501, 39, 300), (1502, 3, 17), (1503, 8, 256), (700, 1, 5), (400, 40, 1), (90, 2, 90)],
)
def test_fit_matches_published_algorithm(rng, n_frames, n_features, n_codewords):
    frames = music_like(rng, n_frames, n_features)
    codebook = Codebook(n_codewords, tau=1, random_state=3).fit(frames)
    order = np.random.default_rng([3, 0]).permutation(n_frames)
    # Z-scores are float32, as in the codebook. Then only the distances may round differently, and none of these
    # (continuous) frames is within that rounding of two codewords.
    points = z_scored(codebook, frames)[order].astype(np.float32).astype(np.float64)
    centroids, counts = hartigan_twin(points, n_codewords)
    np.testing.assert_array_equal(codebook.counts_, counts)
    np.testing.assert_allclose(codebook.codewords_, centroids, rtol=1e-9, atol=1e-11)


def test_partial_fit_continues_previous_fit(rng):
    frames = music_like(rng, 2003, 10)
    first, second = frames[:801], frames[801:]
    codebook = Codebook(50, tau=1, random_state=8).partial_fit(first)
    started = clone(codebook).fit(first)
    np.testing.assert_array_equal(codebook.codewords_, started.codewords_)
    mean, scale = codebook.mean_, codebook.scale_
    codebook.partial_fit(second)
    np.testing.assert_array_equal(codebook.mean_, mean)
    np.testing.assert_array_equal(codebook.scale_, scale)
    order = np.random.default_rng([8, 801]).permutation(len(second))
    points = z_scored(codebook, second)[order].astype(np.float32).astype(np.float64)
    centroids, counts = hartigan_twin(points, 50, started.codewords_, started.counts_)
    np.testing.assert_array_equal(codebook.counts_, counts)
    np.testing.assert_allclose(codebook.codewords_, centroids, rtol=1e-9, atol=1e-11)


def test_codeword_is_mean_of_its_frames(rng):
    frames = music_like(rng, 5000)
    codebook = Codebook(100, random_state=0).fit(frames)
    assert codebook.counts_.sum() == 5000
    assert codebook.counts_.min() >= 1
    # so the weighted mean of all codewords is the mean of all z-scored frames: 0, up to float32
    np.testing.assert_allclose(codebook.counts_ @ codebook.codewords_ / 5000, 0.0, atol=1e-6)


def test_mean_and_scale_cover_all_frames(rng):
    frames = music_like(rng, 40_000, 5) + np.float32(1000.0)
    codebook = Codebook(4, tau=1, random_state=0).fit(frames)
    np.testing.assert_allclose(codebook.mean_, frames.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(codebook.scale_, frames.std(axis=0, dtype=np.float64), rtol=1e-9)


def test_one_pass_approximates_lloyd_on_separated_sounds(rng):
    """Truth: 30 sounds of deviation 0.1. The mean squared error of the true centers is 0.1^2 d."""
    centres = rng.normal(size=(30, 8)) * 3
    frames = centres[rng.integers(30, size=20_000)] + 0.1 * rng.normal(size=(20_000, 8))
    codebook = Codebook(90, tau=1, random_state=1).fit(frames)
    true_error = ((0.1 / codebook.scale_) ** 2).sum()
    # with three codewords per sound, every sound is found, and the error is below that of the centers
    assert quantization_error(codebook, frames) < true_error


def test_constant_column_has_scale_one(rng):
    frames = music_like(rng, 900, 6)
    with_constant = np.insert(frames, 3, np.float32(-123.456), axis=1)
    plain = Codebook(40, random_state=2).fit(frames)
    codebook = Codebook(40, random_state=2).fit(with_constant)
    assert codebook.scale_[3] == 1.0
    np.testing.assert_array_equal(codebook.codewords_[:, 3], 0.0)
    np.testing.assert_array_equal(codebook.transform([with_constant]), plain.transform([frames]))


def test_unused_codewords_are_never_chosen(rng):
    """Digital silence repeats one frame. A codeword that no frame moved must not attract any."""
    distinct = rng.normal(size=(3, 5))
    frames = np.repeat(distinct, [400, 300, 300], axis=0)
    codebook = Codebook(8, tau=3, random_state=0).fit(frames)
    assert sorted(codebook.counts_) == [0, 0, 0, 0, 0, 300, 300, 400]
    histogram = codebook.transform([frames, np.zeros((4, 5)) + frames.mean(axis=0)])
    np.testing.assert_array_equal(histogram[:, codebook.counts_ == 0], 0.0)
    assert quantization_error(codebook, frames) < 1e-12


def test_identical_frames():
    codebook = Codebook(4, tau=4, random_state=0).fit(np.full((10, 2), 7.0))
    np.testing.assert_array_equal(codebook.counts_, [10, 0, 0, 0])
    np.testing.assert_array_equal(codebook.transform([np.full((3, 2), 7.0)]), np.full((1, 4), 0.25))


def test_random_state_determines_result(rng):
    frames = music_like(rng, 3000)
    first, again, other = (Codebook(64, random_state=seed).fit(frames) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.codewords_, again.codewords_)
    assert not np.array_equal(first.codewords_, other.codewords_)
    generator = Codebook(64, random_state=np.random.default_rng(5)).fit(frames)
    assert generator.counts_.sum() == 3000


def test_results_do_not_depend_on_threads(rng):
    """This includes threads of BLAS, and concurrent fits and transforms in one process."""
    frames = music_like(rng, 4000)
    songs = [frames[start : start + 400] for start in range(0, 4000, 400)]

    def fitted(seed):
        codebook = Codebook(300, random_state=seed).fit(frames)
        return codebook.codewords_, codebook.transform(songs)

    with threadpool_limits(1):
        alone = [fitted(seed) for seed in range(4)]
    with threadpool_limits(2), ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, range(4)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


# --- histograms --------------------------------------------------------------------------------------


@st.composite
def whole_numbers(draw):
    """Return frames and codewords of small whole numbers: many ties, and no rounding in float32."""
    n_features = draw(st.integers(1, 5))
    n_codewords = draw(st.one_of(st.integers(1, 12), st.integers(250, 260)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    frames = rng.integers(-3, 4, size=(draw(st.integers(1, 30)), n_features)).astype(np.float32)
    codewords = rng.integers(-3, 4, size=(n_codewords, n_features))
    return frames, codewords, draw(st.integers(1, n_codewords))


@given(whole_numbers())
@settings(max_examples=150)
def test_histogram_matches_brute_force_with_ties(case):
    frames, codewords, tau = case
    expected = histogram_twin(frames, codewords, tau)
    np.testing.assert_array_equal(made_of(codewords, tau).transform([frames])[0], expected.astype(np.float32))


@pytest.mark.parametrize("tau", [1, 4, 16, 17, 40])
def test_nearest_codewords_are_ordered_with_ties(rng, tau):
    frames = rng.integers(-3, 4, size=(50, 3)).astype(np.float32)
    codewords = rng.integers(-3, 4, size=(600, 3))
    distances = np.square(frames[:, None] - codewords).sum(axis=2)
    expected = np.argsort(distances, axis=1, kind="stable")[:, :tau]
    np.testing.assert_array_equal(made_of(codewords, tau).nearest(frames), expected)


@pytest.mark.parametrize("tau", [1, 4, 8, 1024])
def test_histogram_matches_brute_force_on_music_like_frames(rng, tau):
    frames = music_like(rng, 6000)
    codebook = Codebook(1024, tau=tau, random_state=0).fit(frames)
    song = frames[:201]
    expected = histogram_twin(z_scored(codebook, song), codebook.codewords_, tau)
    # distances are float32: one frame in a thousand may have its last codeword replaced by an equally near one
    moved = np.abs(codebook.transform([song])[0] - expected).sum() * tau * len(song) / 2
    assert moved <= 1.0


def test_tau_of_all_codewords_gives_uniform_histogram(rng):
    frames = music_like(rng, 300, 7)
    histograms = Codebook(30, tau=30, random_state=0).fit(frames).transform([frames, frames[:1]])
    np.testing.assert_array_equal(histograms, np.full((2, 30), np.float32(1 / 30)))


def test_single_frame_is_split_among_tau_codewords(rng):
    frames = music_like(rng, 500)
    histogram = Codebook(64, tau=4, random_state=0).fit(frames).transform([frames[:1]])[0]
    assert sorted(histogram)[-5:] == [0.0, 0.25, 0.25, 0.25, 0.25]


def test_equal_codewords_tie_to_lower_index():
    codewords = np.full((600, 3), 9.0)
    codewords[[37, 255, 256, 599]] = 1.1  # 1.1 is not exact in float32: equal only if computed alike
    histogram = made_of(codewords, tau=2).transform([np.full((5, 3), 1.0)])[0]
    assert np.flatnonzero(histogram).tolist() == [37, 255]


@given(n_songs=st.integers(1, 6), tau=st.integers(1, 20), seed=st.integers(0, 2**32), data=st.data())
@settings(max_examples=40)
def test_songs_are_independent(n_songs, tau, seed, data):
    rng = np.random.default_rng(seed)
    frames = music_like(rng, 400, 6)
    codebook = Codebook(20, tau=tau, random_state=0).fit(frames)
    songs = [frames[: rng.integers(1, 60)] for _ in range(n_songs)]
    histograms = codebook.transform(songs)
    assert histograms.dtype == np.float32
    # 20 float32 entries, each rounded to 6e-8 of itself
    np.testing.assert_allclose(histograms.sum(axis=1, dtype=np.float64), 1.0, atol=1e-6)
    assert histograms.min() >= 0.0
    order = data.draw(st.permutations(range(n_songs)))
    np.testing.assert_array_equal(codebook.transform(songs[i] for i in order), histograms[order])
    cut = data.draw(st.integers(0, n_songs))
    parts = [codebook.transform(songs[:cut]), codebook.transform(songs[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), histograms)
    shuffled = [rng.permutation(song) for song in songs]
    np.testing.assert_array_equal(codebook.transform(shuffled), histograms)


@pytest.mark.parametrize("large", [1e15, 1e25, -3e38])
def test_extreme_values_do_not_overflow(rng, large):
    frames = music_like(rng, 300, 3)
    codebook = Codebook(20, tau=4, random_state=0).fit(frames)
    wild = np.array([[large, 0.0, -large]])
    assert np.count_nonzero(codebook.transform([wild])) == 4
    codebook.partial_fit(np.concatenate([wild, frames[:9]]))
    assert codebook.counts_.sum() == 310
    assert np.isfinite(codebook.codewords_).all()


def test_no_songs_give_no_rows(rng):
    codebook = Codebook(16, random_state=0).fit(music_like(rng, 100, 4))
    assert codebook.transform([]).shape == (0, 16)


def test_accepts_any_frame_dtype_and_layout(rng):
    frames = music_like(rng, 500, 9)
    codebook = Codebook(32, random_state=0).fit(frames)
    expected = codebook.transform([frames])
    read_only = frames.copy()
    read_only.flags.writeable = False
    forms = [frames.astype(np.float64), np.asfortranarray(frames), read_only, frames.tolist()]
    for form in forms:
        np.testing.assert_array_equal(codebook.transform([form]), expected)
        np.testing.assert_array_equal(clone(codebook).fit(form).codewords_, codebook.codewords_)


def test_fit_accepts_songs_or_frames(rng):
    frames = music_like(rng, 500, 9)
    songs = [frames[:200], frames[200:]]
    codebook = Codebook(32, random_state=0)
    joined = codebook.fit(frames).transform(songs)
    np.testing.assert_array_equal(clone(codebook).fit_transform(songs), joined)


# --- number of codewords, parameters, errors ---------------------------------------------------------


@given(n_frames=st.integers(1, 10**7), maximum=st.sampled_from([16, 64, 1024, 2048]))
def test_suggested_size_follows_rule(n_frames, maximum):
    n = suggest_n_codewords(n_frames, maximum)
    allowed = [p for p in 2 ** np.arange(24) if p * 50 <= n_frames and 16 <= p <= maximum]
    assert n == min(max(allowed, default=16), n_frames)


@pytest.mark.parametrize("arguments", [(0,), (10, 8)])
def test_suggestion_rejects_bad_arguments(arguments):
    with pytest.raises(ValueError, match="at least"):
        suggest_n_codewords(*arguments)


def test_constructor_stores_parameters_and_clones():
    codebook = Codebook(n_codewords=7, tau=2, random_state=1)
    assert clone(codebook).get_params() == {"n_codewords": 7, "tau": 2, "random_state": 1}
    assert vars(codebook) == {"n_codewords": 7, "tau": 2, "random_state": 1}


@pytest.mark.parametrize(
    ("parameters", "frames", "message"),
    [
        ({"n_codewords": 20}, np.ones((19, 2)), "n_frames=19 must be >= n_codewords=20"),
        ({"n_codewords": 2, "tau": 3}, np.ones((9, 2)), "tau=3 must be >= 1 and <= n_codewords=2"),
        ({"n_codewords": 2, "tau": 0}, np.ones((9, 2)), "tau=0"),
        ({"n_codewords": 0}, np.ones((9, 2)), "n_codewords=0"),
        ({}, np.ones(9), r"frames: the shape is \(9,\)"),
        ({}, np.ones((0, 39)), "frames: empty"),
        ({}, np.ones((5, 0)), r"frames: the shape is \(5, 0\)"),
        ({}, [[0.0, np.nan]], "frames: the values contain NaN or infinity"),
        ({}, [[0.0, -np.inf]], "frames: the values contain NaN or infinity"),
        ({}, [np.ones((4, 2)), np.ones((4, 3))], r"different numbers of features: \[2, 3\]"),
        ({}, [np.ones((4, 2)), np.full((4, 2), np.inf)], r"frames\[1\]: the values contain NaN or infinity"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_fit_rejects_bad_input(method, parameters, frames, message):
    codebook = Codebook(**parameters)
    with pytest.raises(ValueError, match=message):
        getattr(codebook, method)(frames)
    assert vars(codebook) == Codebook(**parameters).get_params()  # a failed fit leaves nothing behind


@pytest.mark.parametrize(
    ("songs", "message"),
    [
        ([np.ones((3, 2)), np.ones((0, 2))], "song 1: empty"),
        ([np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 5))], "song 2: 5 features; .* fitted to 2"),
        ([np.array([[1.0, np.nan]])], "song 0: the values contain NaN or infinity"),
        (np.ones((3, 2)), r"pass \[frames\]"),
        ([np.ones(2)], r"song 0: the shape is \(2,\)"),
    ],
)
def test_transform_error_names_bad_song(songs, message):
    with pytest.raises(ValueError, match=message):
        made_of([[0.0, 0.0], [1.0, 1.0]], tau=1).transform(songs)


def test_tau_changed_after_fit_is_validated(rng):
    codebook = Codebook(16, random_state=0).fit(music_like(rng, 100, 4))
    codebook.set_params(n_codewords=64, tau=32)
    with pytest.raises(ValueError, match="16, the number of codewords in the last fit"):
        codebook.transform([np.ones((3, 4))])
    codebook.set_params(n_codewords=64, tau=2)
    assert codebook.transform([np.ones((3, 4))]).shape == (1, 16)


def test_large_finite_values_are_accepted():
    frames = np.full((4, 1), 3e38, dtype=np.float32)
    assert made_of([[0.0], [1.0]], tau=2).transform([frames]).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("n_frames", [1, 4, 203])
def test_nearest_matches_transform_in_distance_order(rng, n_frames):
    frames = music_like(rng, 2000)
    codebook = Codebook(n_codewords=300, tau=4, random_state=0).fit(frames)
    found = codebook.nearest(frames[:n_frames])
    counted = np.bincount(found.ravel(), minlength=300) / found.size
    np.testing.assert_array_equal(counted.astype(np.float32), codebook.transform([frames[:n_frames]])[0])
    points = z_scored(codebook, frames[:n_frames].astype(np.float64))
    distances = ((points[:, np.newaxis] - codebook.codewords_) ** 2).sum(axis=2)
    # float32 rounding may swap codewords at equal distances
    np.testing.assert_allclose(
        np.take_along_axis(distances, found, axis=1), np.sort(distances, axis=1)[:, :4], rtol=1e-4
    )


def test_nearest_breaks_ties_by_lower_index():
    codebook = made_of([[1.0], [-1.0], [1.0], [5.0]], tau=3)
    np.testing.assert_array_equal(codebook.nearest([[0.0], [1.0]]), [[0, 1, 2], [0, 2, 1]])
