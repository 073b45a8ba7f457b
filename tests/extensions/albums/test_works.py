"""Tests of works with several movements."""

from dataclasses import replace

import pytest

from musicsim.extensions.albums.works import group_works, name_movement

TITLES = {
    "numbered after a colon": (
        ["Symphony No. 5: I. Allegro", "Symphony No. 5: II. Andante", "Overture"],
        {"Symphony No. 5": ["I. Allegro", "II. Andante"], "": ["Overture"]},
    ),
    "numbered after a dash or a comma": (
        ["Suite, I. Air", "Suite - II. Gigue", "Sonata – 1) Largo", "Sonata – 2) Presto"],
        {"Suite": ["I. Air", "II. Gigue"], "Sonata": ["1) Largo", "2) Presto"]},
    ),
    "only a colon": (
        ["Cello Suite in G: Prelude", "Cello suite in G: Courante"],
        {"Cello Suite in G": ["Prelude", "Courante"]},
    ),
    "the longest common beginning": (
        ["Works: Trio: I. Vivo", "Works: Trio: II. Lento", "Works: Duo: I. Vivo", "Works: Duo: II. Lento"],
        {"Works: Trio": ["I. Vivo", "II. Lento"], "Works: Duo": ["I. Vivo", "II. Lento"]},
    ),
    "a colon within a movement": (
        ["Ninth: III. Adagio", "Ninth: IV. Finale: Presto"],
        {"Ninth": ["III. Adagio", "IV. Finale: Presto"]},
    ),
    "not a work": (
        ["Love - Live", "Love - Remix", "Artist tones: A", "Artist tones: B", "Alone: I. Here", "Song"],
        {"": ["Love - Live", "Love - Remix", "Artist tones: A", "Artist tones: B", "Alone: I. Here", "Song"]},
    ),
    "no songs": ([], {}),
}


@pytest.mark.parametrize(("titles", "expected"), TITLES.values(), ids=TITLES)
def test_consecutive_movements_form_a_work(tiny_library, titles, expected):
    song = next(song for song in tiny_library.songs() if song.artist == "Artist tones")
    works = group_works([replace(song, title=title) for title in titles])
    assert {work.title: [name_movement(work, one) for one in work.songs] for work in works} == expected
    assert [one.title for work in works for one in work.songs] == titles


def test_interrupted_work_is_two_works(tiny_library):
    song = tiny_library.songs()[0]
    titles = ["Mass: Kyrie", "Mass: Gloria", "Motet", "Mass: Credo", "Mass: Sanctus"]
    works = group_works([replace(song, title=title) for title in titles])
    assert [(work.title, len(work.songs)) for work in works] == [("Mass", 2), ("", 1), ("Mass", 2)]
