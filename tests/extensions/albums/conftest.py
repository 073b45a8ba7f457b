"""A library with two albums per artist."""

import pytest


@pytest.fixture
def halves(tiny_library):
    """The tiny library, whose three albums of four songs are split into "… A" and "… B" with two songs each."""
    for song in tiny_library.songs():
        kind = song.artist.removeprefix("Artist ")
        tiny_library.edits.edit([song.id], {"album": f"{kind.capitalize()} {'AABB'[song.track - 1]}"})
    return tiny_library


@pytest.fixture
def works(tiny_library):
    """The ids of three works in the tiny library: one has three movements, and two on the same album have two each."""
    titles = {
        "tones": ["Overture", "Sonata: I. Allegro", "Sonata: II. Largo", "Sonata: III. Presto"],
        "clicks": ["Trio in A major: 1. Vivo", "Trio in A major: 2. Rondo", "Suite - 1. Air", "Suite - 2. Gigue"],
    }
    of_artist = {kind: {} for kind in titles}
    for song in tiny_library.songs():
        kind = song.artist.removeprefix("Artist ")
        if kind in titles:
            tiny_library.edits.edit([song.id], {"title": titles[kind][song.track - 1]})
            of_artist[kind][song.track] = song.id
    tones, clicks = of_artist["tones"], of_artist["clicks"]
    return [(tones[2], tones[3], tones[4]), (clicks[1], clicks[2]), (clicks[3], clicks[4])]
