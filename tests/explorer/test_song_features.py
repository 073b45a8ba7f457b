"""Tests of features of many songs: the same in the same order for any number of threads."""

import os
import threading

import numpy as np
import pytest

from musicsim.errors import FeatureVersionError
from musicsim.explorer.models import song_features
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.progress import Canceled, no_progress


@pytest.fixture
def model(tiny_library):
    return SimilarityModel.load(tiny_library.models.path(tiny_library.models.codewords().id))


@pytest.mark.parametrize("n_cores", [1, 3])
@pytest.mark.parametrize("block", [2, 5])
def test_blocks_match_single_songs_in_order(tiny_library, model, monkeypatch, n_cores, block):
    monkeypatch.setattr(song_features, "BLOCK", block)
    monkeypatch.setattr(song_features, "SONGS_PER_TASK", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
    songs = tiny_library.songs()[:11]
    told = []
    blocks = list(feature_blocks(tiny_library, model, songs, lambda _, done, total: told.append((done, total))))
    assert [song.id for block, _ in blocks for song in block] == [song.id for song in songs]
    assert told == [(done, 11) for done in range(0, 11, block)]
    alone = [model.features([tiny_library.frame_files.frames(song.content_hash)]) for song in songs]
    np.testing.assert_array_equal(np.concatenate([found for _, found in blocks]), np.concatenate(alone))


def test_missing_frames_stop_iteration_and_threads(tiny_library, model, monkeypatch):
    monkeypatch.setattr(song_features, "BLOCK", 1)
    songs = tiny_library.songs()
    tiny_library.frame_files.drop(songs[1].content_hash)
    blocks = feature_blocks(tiny_library, model, songs, no_progress)
    assert next(blocks)[0] == songs[:1]
    with pytest.raises(FeatureVersionError):
        next(blocks)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("core")]


def test_cancel_ends_threads(tiny_library, model, monkeypatch):
    monkeypatch.setattr(song_features, "BLOCK", 1)

    def progress(_, done, total):
        if done == 2:
            raise Canceled

    with pytest.raises(Canceled):
        list(feature_blocks(tiny_library, model, tiny_library.songs(), progress))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("core")]
