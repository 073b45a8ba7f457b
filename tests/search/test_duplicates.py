"""Tests of duplicates: the same sound is found, other sound is not, and candidates follow the definition."""

import io
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.audio import HOP, SAMPLE_RATE, decode, harmony, mfcc
from musicsim.extensions.robustness.encoding import encode
from musicsim.search import duplicates, find_duplicates, frame_changes, group_pairs, recordings
from musicsim.search.recordings import Comparison
from tests.sounds import melody, sound

SECONDS = 8.0


def _file(y, container, codec=None, kbps=0, rate=SAMPLE_RATE):
    """Return the bytes of a mono sound in another encoding."""
    file = io.BytesIO()
    if codec is None:
        soundfile.write(file, y, SAMPLE_RATE, format=container)
        return file.getvalue()
    return encode(y[None], SAMPLE_RATE, container, codec, kbps, rate)


def _decoded(data):
    return decode(data).samples


def _silence(seconds):
    return np.zeros(int(seconds * SAMPLE_RATE), np.float32)


COPIES = {
    "mp3 64 kbit/s": lambda y: _decoded(_file(y, "mp3", "libmp3lame", 64)),
    "mp3 128 kbit/s": lambda y: _decoded(_file(y, "mp3", "libmp3lame", 128)),
    "ogg": lambda y: _decoded(_file(y, "OGG")),
    "flac": lambda y: _decoded(_file(y, "FLAC")),
    "opus": lambda y: _decoded(_file(y, "ogg", "libopus", 64, rate=48000)),
    "m4a": lambda y: _decoded(_file(y, "ipod", "aac", 96)),
    "gain -6 dB": lambda y: 0.5 * y,
    "gain +3 dB": lambda y: 1.41 * y,
    "1 s cut off": lambda y: y[SAMPLE_RATE:],
    "2.5 s cut off the end": lambda y: y[: -5 * SAMPLE_RATE // 2],
    "silence at both ends": lambda y: np.concatenate([_silence(0.5), y, _silence(0.5)]),
    "other polarity": lambda y: -y,
}
OFFSETS = {"1 s cut off": -1.0, "silence at both ends": 0.5}


def _faster(y, by):
    places = np.arange(0, len(y) - 1, 1 + by)
    return np.interp(places, np.arange(len(y)), y).astype(np.float32)


def _pairs(sounds):
    """Find pairs among sounds with equal vectors, so that the MFCC alone decide."""
    frames = [mfcc(y).astype(np.float16) for y in sounds]
    durations = np.array([len(y) / SAMPLE_RATE for y in sounds])
    return find_duplicates(np.zeros((len(sounds), 3)), durations, frames.__getitem__)


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("kind", ["tones", "noise"])
def test_every_kind_of_copy_is_found_where_it_lies(kind, copy):
    y = sound(kind, 3, SECONDS)
    (pair,) = _pairs([y, COPIES[copy](y), sound(kind, 4, SECONDS)])
    assert (pair.first, pair.second) == (0, 1)
    assert 0.82 <= pair.similarity <= 1.0
    # encoders insert up to 50 ms before the sound, and a frame is 12 ms
    assert pair.offset_s == pytest.approx(OFFSETS.get(copy, 0.0), abs=0.07)


def test_the_offset_turns_with_the_order_of_the_songs():
    y = sound("tones", 3, SECONDS)
    (pair,) = _pairs([y[SAMPLE_RATE:], y])
    assert pair.offset_s == pytest.approx(1.0, abs=2 * HOP / SAMPLE_RATE)


def test_a_shift_beyond_the_largest_offset_is_not_found(monkeypatch):
    y = sound("tones", 3, SECONDS)
    for seconds, n_found in ((0.5, 0), (1.0, 1)):
        monkeypatch.setattr(frame_changes, "MAX_OFFSET", round(seconds * SAMPLE_RATE / HOP))
        assert len(_pairs([y, y[SAMPLE_RATE:]])) == n_found


@pytest.mark.parametrize("largest", [0, 2, 4, 5])
def test_no_shift_is_tried_beyond_the_largest_offset(rng, largest, monkeypatch):
    monkeypatch.setattr(frame_changes, "MAX_OFFSET", largest)
    monkeypatch.setattr(recordings, "MIN_AGREEMENT", 0.01)
    song = _long_song(rng, 20.0)
    songs = [song[:-6], song[6:]]  # six frames apart: the agreement increases up to there
    (pair,) = _pairs_of_frames(songs)
    assert abs(pair.offset_s) <= largest * HOP / SAMPLE_RATE


@pytest.mark.parametrize("kind", ["tones", "noise", "clicks"])
def test_other_sounds_of_the_same_kind_are_not_the_same(kind):
    assert _pairs([sound(kind, seed, SECONDS) for seed in range(8)]) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y[::-1].copy(),
        lambda y: _faster(y, 0.03),
        lambda y: y + sound("tones", 9, SECONDS),
        lambda y: np.concatenate([y[: len(y) // 2], sound("tones", 9, SECONDS / 2)]),
        np.zeros_like,
    ],
    ids=["backwards", "3 % faster", "with another voice", "half replaced", "silence"],
)
def test_what_is_near_but_not_the_same_is_not_found(change):
    y = sound("tones", 3, SECONDS)
    assert _pairs([y, change(y)]) == []


# --- the same notes at another speed, pitch or time ----------------------------------------------


@pytest.mark.parametrize("drums", [0.0, 1.0, 3.0], ids=["notes", "notes and drums", "mostly drums"])
@pytest.mark.parametrize("semitones", [-1, 1])
def test_a_transposed_song_is_not_a_duplicate(semitones, drums):
    same, transposed = (melody(5, semitones=steps, drums=drums) for steps in (0, semitones))
    assert _pairs([same, transposed]) == []


@pytest.mark.parametrize("semitones", [-1, 1, 5])
def test_harmony_shows_a_transposition_that_drums_hide(semitones):
    harmonies = [harmony(melody(5, semitones=steps)) for steps in (0, semitones)]
    frames = mfcc(melody(5, drums=10.0))
    rows = np.zeros((2, 1)), np.full(2, 31.0), lambda row: frames
    assert find_duplicates(*rows, harmony_of=harmonies.__getitem__) == []
    for known in ([harmonies[0], None], [harmonies[0], harmonies[0]]):
        assert len(find_duplicates(*rows, harmony_of=known.__getitem__)) == 1


def test_harmony_without_clear_pitches_does_not_separate_duplicates():
    y = sound("noise", 3, SECONDS)
    frames, harmonies = [mfcc(y), mfcc(y)], [harmony(y), harmony(sound("noise", 4, SECONDS))]
    rows = np.zeros((2, 1)), np.full(2, SECONDS), frames.__getitem__
    assert len(find_duplicates(*rows, harmony_of=harmonies.__getitem__)) == 1


@pytest.mark.parametrize("by", [-0.05, -0.02, -0.01, -0.005, 0.005, 0.01, 0.02, 0.05])
def test_a_song_at_another_speed_is_not_a_duplicate(by):
    y = melody(5, drums=1.0)
    assert _pairs([y, _faster(y, by)]) == []
    assert _pairs([y, melody(5, rate=1 + by, drums=1.0)]) == []


@pytest.mark.parametrize("by", [-0.0015, -0.0005, 0.0005, 0.0015])
@pytest.mark.parametrize("seconds", [30.0, 90.0])
def test_a_recorder_with_another_clock_gives_a_duplicate(by, seconds):
    y = melody(5, drums=1.0, seconds=seconds)
    (pair,) = _pairs([y, _faster(y, by)])
    assert pair.similarity >= 0.9


@pytest.mark.parametrize("by", [-0.003, -0.0015, 0.0015, 0.003])
def test_speed_is_measured(by):
    y = melody(5, drums=1.0)
    match = Comparison([mfcc(y), mfcc(_faster(y, by))].__getitem__).match(0, 1)
    # the offset decreases by 1 - 1 / (1 + by) per frame; a tenth of a frame in a segment is 4e-5 of the song
    assert match.drift == pytest.approx(1 / (1 + by) - 1, abs=1e-4)
    assert match.is_same_recording == (abs(by) <= 0.002)


def test_another_performance_in_strict_tempo_is_not_a_duplicate():
    assert _pairs([melody(5), melody(5, jitter_s=0.015)]) == []


def test_two_silent_songs_are_never_verified():
    assert _pairs([_silence(SECONDS), _silence(SECONDS)]) == []


def test_sounds_shorter_than_the_features_of_the_comparison_are_no_pair():
    y = sound("tones", 3, 0.15)
    assert _pairs([y, y]) == []


# --- long songs: an excerpt is compared first ---------------------------------------------------


def _long_song(rng, seconds):
    """Return MFCC that vary slowly, as in music."""
    n = int(seconds * SAMPLE_RATE / HOP)
    steps = rng.standard_normal((n, 13))
    return (20.0 * steps.cumsum(axis=0) / np.sqrt(np.arange(1, n + 1))[:, None]).astype(np.float16)


def _pairs_of_frames(songs):
    durations = np.array([len(frames) * HOP / SAMPLE_RATE for frames in songs])
    return find_duplicates(np.zeros((len(songs), 2)), durations, songs.__getitem__)


@pytest.mark.parametrize("shift", [0, 1, 2, 3, 100, 429])
def test_a_shifted_long_song_is_found_to_the_frame(rng, shift):
    song = _long_song(rng, 75.0)
    n = int(70 * SAMPLE_RATE / HOP)
    (pair,) = _pairs_of_frames([song[:n], _long_song(rng, 70.0), song[shift : shift + n]])
    assert (pair.first, pair.second) == (0, 2)
    assert pair.offset_s == pytest.approx(-shift * HOP / SAMPLE_RATE)
    assert pair.similarity == pytest.approx(1.0, abs=1e-4)  # sums in float32


def test_a_song_whose_excerpt_stands_still_is_judged_by_the_rest(rng):
    song = _long_song(rng, 90.0)
    song[: int(52 * SAMPLE_RATE / HOP)] = song[0]
    (pair,) = _pairs_of_frames([song, song + 50.0])
    assert pair.similarity == pytest.approx(1.0, abs=1e-2)  # float16 rounds differently 50 dB higher


def test_long_songs_that_share_their_excerpt_alone_are_not_the_same(rng):
    song, other = _long_song(rng, 120.0), _long_song(rng, 120.0)
    end = int(50 * SAMPLE_RATE / HOP)
    other[:end] = song[:end]
    assert _pairs_of_frames([song, other]) == []


def test_frames_may_come_from_a_memory_map(rng, tmp_path):
    song = _long_song(rng, 60.0)
    np.save(tmp_path / "song.npy", song)
    mapped = np.load(tmp_path / "song.npy", mmap_mode="r")
    assert _pairs_of_frames([mapped, song]) == _pairs_of_frames([song, song])


def test_more_columns_than_the_mfcc_change_nothing(rng):
    song = _long_song(rng, 30.0).astype(np.float32)
    wide = np.concatenate([song, rng.standard_normal((len(song), 26))], axis=1)
    assert _pairs_of_frames([wide, song]) == _pairs_of_frames([song, song])


# --- candidates ---------------------------------------------------------------------------------


def _by_definition(X, durations, least, k):
    """Return pairs near enough in vectors and durations, if one is among the k nearest of the other."""
    n = len(X)
    similarity = {}
    for i, j in combinations(range(n), 2):
        value = 1.0 - float(((X[i].astype(np.float64) - X[j]) ** 2).sum()) / 2.0
        apart = abs(durations[i] - durations[j])
        if value >= least and apart <= max(3.0, 0.03 * max(durations[i], durations[j])):
            similarity[i, j] = similarity[j, i] = value
    order = np.argsort(durations, kind="stable")
    place = np.argsort(order, kind="stable")
    chosen = set()
    for i in range(n):
        near = sorted((-similarity[i, j], place[j], j) for j in range(n) if (i, j) in similarity)
        chosen |= {(min(i, j), max(i, j)) for *_, j in near[:k]}
    return [(i, j, similarity[i, j]) for i, j in sorted(chosen)]


def _found_by_vectors(X, durations, least, k, rows=None, block_rows=duplicates.BLOCK_ROWS):
    with patch.object(duplicates, "BLOCK_ROWS", block_rows):
        return sorted(duplicates.find_candidates(X, durations, rows, least, k))


# quarters: products and sums are exact, so limits and ties agree on both sides
@settings(max_examples=80)
@given(
    st.integers(0, 25), st.integers(1, 4), st.integers(0, 2**31), st.integers(1, 30), st.integers(1, 7),
    st.sampled_from([0.0, 0.5, 0.9375]),
)  # fmt: skip
def test_candidates_equal_the_definition(n, d, seed, k, block_rows, least):
    rng = np.random.default_rng(seed)
    X = (rng.integers(-3, 4, (n, d)) / 4).astype(np.float32)
    durations = rng.choice([0.0, 3.0, 97.0, 100.0, 103.0, 200.0, 206.0, 206.5], n)
    assert _found_by_vectors(X, durations, least, k, block_rows=block_rows) == _by_definition(X, durations, least, k)


def test_candidates_equal_the_definition_far_from_the_origin(rng):
    X = (30.0 + 0.15 * rng.standard_normal((200, 20))).astype(np.float32)
    durations = rng.uniform(100, 200, 200)
    found = _found_by_vectors(X, durations, 0.6, 200)
    truth = _by_definition(X, durations, 0.6, 200)
    assert found
    assert [pair[:2] for pair in found] == [pair[:2] for pair in truth]
    np.testing.assert_allclose([p[2] for p in found], [p[2] for p in truth], rtol=1e-12)  # both in float64


def test_of_songs_that_are_all_alike_few_are_compared_in_float64(rng, monkeypatch):
    X = (0.01 * rng.standard_normal((2_000, 20))).astype(np.float32)
    n_compared = 0

    def counted(X, q, r):
        nonlocal n_compared
        n_compared += len(q)
        return similarity(X, q, r)

    similarity = duplicates.compute_similarity
    monkeypatch.setattr(duplicates, "compute_similarity", counted)
    durations = np.full(2_000, 10.0)
    found = _found_by_vectors(X, durations, 0.9, 3, block_rows=50)
    assert n_compared < 2_000 * 200  # of 2,000 * 2,000: a tile of 50 per block, plus further candidates
    nearest = np.argsort(((X[:, None].astype(np.float64) - X[:60]) ** 2).sum(axis=2), axis=0, kind="stable")
    truth = {(min(i, j), max(i, j)) for i in range(60) for j in nearest[1:4, i].tolist()}
    assert truth <= {pair[:2] for pair in found}


@pytest.mark.parametrize("rows", [[], [3], [0, 7, 7, 11], range(40)])
def test_rows_give_the_pairs_that_involve_them(rng, rows):
    X = rng.standard_normal((40, 2)).astype(np.float32)
    durations = rng.uniform(10, 20, 40)
    every = _found_by_vectors(X, durations, 0.5, 40)
    found = _found_by_vectors(X, durations, 0.5, 40, rows=list(rows))
    assert found == [pair for pair in every if pair[0] in rows or pair[1] in rows]


def test_songs_too_far_apart_in_vectors_or_duration_are_not_compared(rng):
    song = _long_song(rng, 30.0)
    asked = []

    def frames_of(row):
        asked.append(row)
        return song

    X = np.array([[0.0], [1.0], [0.0]])
    assert find_duplicates(X, np.array([30.0, 30.0, 33.5]), frames_of) == []
    assert asked == []


def test_songs_without_stored_frames_are_not_a_pair(rng):
    song = _long_song(rng, 30.0)
    pairs = find_duplicates(np.zeros((3, 1)), np.full(3, 30.0), lambda row: song if row != 1 else None)
    assert [(pair.first, pair.second) for pair in pairs] == [(0, 2)]


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1])
def test_no_song_and_one_song_have_no_pair(n):
    def frames_of(row):
        raise AssertionError(f"row {row} should not be read")

    assert find_duplicates(np.zeros((n, 5)), np.full(n, 10.0), frames_of) == []
    assert group_pairs(n, []).tolist() == list(range(n))


@pytest.mark.parametrize(
    ("X", "durations", "options", "message"),
    [
        (np.zeros(3), np.ones(3), {}, "X has shape"),
        (np.zeros((3, 2)), np.ones(2), {}, "durations"),
        (np.full((3, 2), np.nan), np.ones(3), {}, "X contains NaN"),
        (np.zeros((3, 2)), np.array([1, 2, np.inf]), {}, "durations contains NaN"),
        (np.zeros((3, 2)), np.ones(3), {"rows": [3]}, "rows must be integers"),
        (np.zeros((3, 2)), np.ones(3), {"rows": [-1]}, "rows must be integers"),
        (np.zeros((3, 2)), np.ones(3), {"rows": [0.5]}, "rows must be integers"),
        (np.zeros((3, 2)), np.ones(3), {"rows": np.array([True, False, True])}, "rows must be integers"),
        (np.zeros((3, 2)), np.ones(3), {"max_candidates": 0}, "max_candidates"),
    ],
)
def test_bad_arguments_are_named(X, durations, options, message):
    with pytest.raises(ValueError, match=message):
        find_duplicates(X, durations, lambda row: None, **options)


def test_frames_of_another_width_are_refused():
    with pytest.raises(ValueError, match="13"):
        find_duplicates(np.zeros((2, 1)), np.full(2, 5.0), lambda row: np.zeros((400, 12)))


# --- groups -------------------------------------------------------------------------------------


@given(st.integers(2, 20).flatmap(lambda n: st.tuples(
    st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=25)
)))  # fmt: skip
def test_groups_are_what_pairs_connect(case):
    n, edges = case
    labels = list(range(n))
    for a, b in edges:
        labels = [labels[a] if label == labels[b] else label for label in labels]
    groups = group_pairs(n, edges)
    for i, j in combinations(range(n), 2):
        assert (groups[i] == groups[j]) == (labels[i] == labels[j])
    firsts = list(dict.fromkeys(groups.tolist()))
    assert firsts == list(range(len(firsts)))  # numbered in the order of their first songs


def test_a_pair_of_a_song_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="row numbers from 0 to 1"):
        group_pairs(2, [(1, 2)])
