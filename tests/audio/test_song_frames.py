"""Tests of stored song data: the frames of the thesis, parts, and files of this version and of previous ones."""

import numpy as np
import pytest

from musicsim.audio import (
    SAMPLE_RATE,
    SongFrames,
    analyze_sound,
    append_parts,
    derivatives,
    fluctuation,
    load,
    mfcc,
    read_song_frames,
)
from tests.sounds import write_song


@pytest.fixture(scope="module")
def song(tmp_path_factory):
    return write_song(tmp_path_factory.mktemp("song") / "song.flac", "tones", seed=3, seconds=70.0)


@pytest.fixture(scope="module")
def kept(song):
    sound = analyze_sound(song)
    return SongFrames(sound.mfcc, sound.fluctuation, sound.spectral_shape)


def test_blocks_equal_derivatives_of_coefficients(song, kept):
    expected = derivatives(mfcc(load(song)).astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(np.concatenate(list(kept.blocks())), expected)


def test_file_contains_coefficients_fluctuation_and_shape(song, kept, tmp_path):
    sound = analyze_sound(song, frames_to=tmp_path / "frames.npy")
    read = read_song_frames(tmp_path / "frames.npy")
    assert isinstance(read.mfcc, np.memmap)
    np.testing.assert_array_equal(read.mfcc, kept.mfcc)
    np.testing.assert_array_equal(read.fluctuation, kept.fluctuation)
    np.testing.assert_array_equal(read.spectral_shape, kept.spectral_shape)
    assert read.parts is None
    np.testing.assert_array_equal(sound.fluctuation, fluctuation(load(song)))


def test_reads_file_of_feature_version_2(kept, tmp_path):
    np.save(tmp_path / "frames.npy", kept.mfcc)
    read = read_song_frames(tmp_path / "frames.npy")
    assert read.fluctuation is None
    np.testing.assert_array_equal(np.concatenate(list(read.blocks())), np.concatenate(list(kept.blocks())))
    assert read.part(0, 100).fluctuation is None


@pytest.mark.parametrize("has_parts", [False, True])
def test_reads_file_of_feature_version_3(kept, tmp_path, has_parts):
    path = tmp_path / "frames.npy"
    with path.open("wb") as file:
        for array in (kept.mfcc, kept.fluctuation):
            np.lib.format.write_array(file, array)
    parts = np.ones((4, 820), np.float32)
    if has_parts:
        append_parts(path, parts)
    read = read_song_frames(path)
    np.testing.assert_array_equal(read.fluctuation, kept.fluctuation)
    assert read.spectral_shape is None
    assert read.part(0, 100).spectral_shape is None
    np.testing.assert_array_equal(read.parts, parts if has_parts else None)


def test_parts_have_fluctuation_of_their_seconds(kept):
    n_patterns = len(kept.fluctuation)
    parts = [kept.part(i * len(kept) // 3, (i + 1) * len(kept) // 3) for i in range(3)]
    np.testing.assert_array_equal(np.concatenate([part.mfcc for part in parts]), kept.mfcc)
    np.testing.assert_array_equal(np.concatenate([part.fluctuation for part in parts]), kept.fluctuation)
    assert [len(part.fluctuation) for part in parts] == pytest.approx([n_patterns / 3] * 3, abs=1)
    first, last = kept.part(0, 50), kept.part(len(kept) - 50, len(kept))
    np.testing.assert_array_equal(first.fluctuation, kept.fluctuation[:1])
    np.testing.assert_array_equal(last.fluctuation, kept.fluctuation[-1:])
    second = round(SAMPLE_RATE / 256)
    middle = kept.part(29 * second, 31 * second)  # around 30 s: blocks begin every 6 s and last 12 s
    np.testing.assert_array_equal(middle.fluctuation, kept.fluctuation[4:5])


def test_parts_have_shape_of_their_blocks(kept):
    blocks = kept.spectral_shape  # each has 512 frames
    assert len(blocks) == 12
    for start, stop, expected in (
        (0, 512, slice(0, 1)),
        (0, 256, slice(0, 1)),  # at least one block
        (300, 750, slice(1, 2)),  # the middle of the second block is at 768
        (250, 800, slice(0, 2)),
        (512, 2048, slice(1, 4)),
        (5632, len(kept), slice(11, 12)),
        (0, len(kept), slice(0, 12)),
    ):
        np.testing.assert_array_equal(kept.part(start, stop).spectral_shape, blocks[expected], f"{start} to {stop}")
