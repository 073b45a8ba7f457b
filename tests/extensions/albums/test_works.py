"""Tests of works with several movements."""

from dataclasses import replace

import pytest

from musicsim.extensions.albums.works import group_works, name_movement

POP = [
    "Star Wars: Main Title", "Star Wars: Imperial March", "Best of 1999 - 1. Hello", "Best of 1999 - 2. World",
    "Modern Jazz Quartet: Django", "Modern Jazz Quartet: Softly", "Mambo No. 5: Radio", "Mambo No. 5: Remix",
    "Hits: I. Cara", "Hits: L. Armstrong", "Hits: C. Aznavour", "Mass Effect: Vigil", "Mass Effect: Uncharted Worlds",
    "Skit: A", "Skit: B", "Live in Berlin: Heroes", "Live in Berlin: Changes", "Part I", "Part II", "Disc 2 - 01. One",
    "Disc 2 - 02. Two", "Love (Pt. 1)", "Love (Pt. 2)", "Vol. 4: Changes", "Vol. 4: Snowblind",
    "Op. Cit: A", "Op. Cit: B",
]  # fmt: skip
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
    "a key or an opus": (
        [
            "Trio in B-flat major: 1. Allegro",
            "Trio in B-flat major: 2. Finale",
            "The Planets, Op. 32: Mars",
            "The Planets, Op. 32: Venus",
            "Messe h-Moll - 9. Qui tollis",
            "Messe h-Moll - 10. Qui sedes",
        ],
        {
            "Trio in B-flat major": ["1. Allegro", "2. Finale"],
            "The Planets, Op. 32": ["Mars", "Venus"],
            "Messe h-Moll": ["9. Qui tollis", "10. Qui sedes"],
        },
    ),
    "a second recording of the same work": (
        ["2112: I. Overture", "2112: II. Temples", "2112: I. Overture", "2112: II. Temples"],
        {"2112": ["I. Overture", "II. Temples"]},
    ),
    "numbers that go down": (
        ["Suite - 2. Gigue", "Suite - 1. Air", "Sonata: III. Rondo", "Sonata: II. Adagio"],
        {"": ["Suite - 2. Gigue", "Suite - 1. Air", "Sonata: III. Rondo", "Sonata: II. Adagio"]},
    ),
    "ordinary albums": (POP, {"": POP}),
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
    named = [(work.title, [name_movement(work, one) for one in work.songs]) for work in works]
    assert {title for title, _ in named} == set(expected)
    assert all(movements == expected[title] for title, movements in named)
    assert [one.title for work in works for one in work.songs] == titles


def test_interrupted_work_is_two_works(tiny_library):
    song = tiny_library.songs()[0]
    titles = ["Missa: Kyrie", "Missa: Gloria", "Motet", "Missa: Credo", "Missa: Sanctus"]
    works = group_works([replace(song, title=title) for title in titles])
    assert [(work.title, len(work.songs)) for work in works] == [("Missa", 2), ("", 1), ("Missa", 2)]
