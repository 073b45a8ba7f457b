"""Tests of copies that browsers play: made once for all requests, complete or not at all, bounded in size."""

import os
import signal
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
import soundfile

from musicsim.errors import AudioError
from musicsim.library.media.playable import PlayableCopies
from musicsim.library.processes.decoding import Decoder, Decoding
from tests.sounds import write_song
from tests.waiting import outcome, until


@pytest.fixture
def decoder():
    decoder = Decoder(n_workers=1)
    yield decoder
    decoder.close()


@pytest.fixture
def songs(store, tmp_path):
    """Add four songs that browsers do not play."""
    for n in range(4):
        write_song(tmp_path / "music" / f"{n}.aiff", seed=n, seconds=2)
    store.add(tmp_path / "music", n_workers=1)
    return store.songs()


def made(copies: PlayableCopies, library, song) -> Path:
    copy = copies.copy_of(library, song)
    return outcome(copy) if isinstance(copy, Decoding) else copy


def cached(library) -> list[Path]:
    return sorted((library.folder / "cache").glob("*.mp3"))


def test_concurrent_requests_share_one_transcoding(store, songs, decoder):
    copies = PlayableCopies(decoder)
    first, second = (copies.copy_of(store, songs[0]) for _ in range(2))
    assert first is second
    path = outcome(first)
    assert copies.copy_of(store, songs[0]) == path
    assert soundfile.info(path).duration == pytest.approx(2.0, abs=0.1)


def test_least_recently_played_files_are_evicted(store, songs, decoder):
    size = made(PlayableCopies(decoder), store, songs[0]).stat().st_size
    copies = PlayableCopies(decoder, max_bytes=int(2.5 * size))
    (store.folder / "cache" / "songs.npz").write_bytes(bytes(10 * size))  # not a copy
    second = made(copies, store, songs[1])
    first = made(copies, store, songs[0])  # played again
    assert cached(store) == sorted([first, second])
    third = made(copies, store, songs[2])
    assert cached(store) == sorted([first, third])
    for song in (*songs, *reversed(songs)):
        path = made(copies, store, song)
        assert path in cached(store)
        assert sum(p.stat().st_size for p in cached(store)) <= 2.5 * size
    assert (store.folder / "cache" / "songs.npz").exists()


def test_file_larger_than_cache_replaces_previous_one(store, songs, decoder):
    copies = PlayableCopies(decoder, max_bytes=10)
    for song in songs[:2]:
        path = made(copies, store, song)
        assert cached(store) == [path]


@pytest.mark.long
def test_killed_worker_leaves_no_partial_file(store, tmp_path, decoder):
    path = tmp_path / "long.aiff"
    with soundfile.SoundFile(path, "w", 22050, 1) as file:
        for _ in range(15):
            file.write(np.zeros(60 * 22050, np.float32))
    store.add(path)
    (song,) = store.songs()
    copies = PlayableCopies(decoder)
    copy = copies.copy_of(store, song)
    until(lambda: copy.wait(0.0) or list((store.folder / "scratch").rglob("*.mp3")))
    for child in active_children():
        os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(AudioError, match=r"long\.aiff: the decoder crashed"):
        outcome(copy)
    assert list((store.folder / "scratch").rglob("*.mp3")) == []
    assert cached(store) == []
    assert made(copies, store, song) in cached(store)
