"""A library with two albums per artist."""

import pytest


@pytest.fixture
def halves(tiny_library):
    """The tiny library, whose three albums of four songs are split into "… A" and "… B" with two songs each."""
    for song in tiny_library.songs():
        kind = song.artist.removeprefix("Artist ")
        tiny_library.edits.edit([song.id], {"album": f"{kind.capitalize()} {'AABB'[song.track - 1]}"})
    return tiny_library
