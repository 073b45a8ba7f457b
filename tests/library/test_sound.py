"""Tests of the hook `sound`, which plays songs without a file on this machine."""

from types import SimpleNamespace

import pytest

from musicsim.library.media import sound


@pytest.fixture
def absent(tiny_library, monkeypatch):
    """Add two songs without a file. An extension has the sound of the first."""
    monkeypatch.setattr(
        sound, "load_hooks", lambda point: [SimpleNamespace(songs_with_sound=lambda library, ids: {1} & set(ids))]
    )
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET path = '/nowhere/' || song_id WHERE song_id IN (1, 2)")
    return tiny_library.songs([1, 2])


def test_sound_comes_from_file_or_extension(tiny_library, absent):
    assert [sound.has_sound(tiny_library, song) for song in absent] == [True, False]
    assert sound.has_sound(tiny_library, tiny_library.song(3))


def test_visitors_cannot_play_songs_without_file(tiny_library, absent, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert not sound.has_sound(tiny_library, absent[0])
    assert sound.has_sound(tiny_library, tiny_library.song(3))
