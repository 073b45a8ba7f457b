"""Songs that can be heard without a file here, by the hook `sound`."""

from types import SimpleNamespace

import pytest

from musicsim.library.media import sound


@pytest.fixture
def absent(tiny_library, monkeypatch):
    """Two songs without a file; an extension has the sound of the first."""
    monkeypatch.setattr(
        sound, "load_hooks", lambda point: [SimpleNamespace(songs_with_sound=lambda library, ids: {1} & set(ids))]
    )
    with tiny_library.write() as connection:
        connection.exec_driver_sql("UPDATE files SET path = '/nowhere/' || song_id WHERE song_id IN (1, 2)")
    return tiny_library.songs([1, 2])


def test_a_song_is_heard_from_its_file_or_from_elsewhere(tiny_library, absent):
    assert [sound.has_sound(tiny_library, song) for song in absent] == [True, False]
    assert sound.has_sound(tiny_library, tiny_library.song(3))


def test_visitors_do_not_hear_songs_from_elsewhere(tiny_library, absent, monkeypatch):
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    assert not sound.has_sound(tiny_library, absent[0])
    assert sound.has_sound(tiny_library, tiny_library.song(3))
