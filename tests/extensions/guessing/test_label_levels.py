"""Tests of label levels: sub-genres of genres, and albums of artists."""

from types import SimpleNamespace

import numpy as np
import pytest

from musicsim.extensions.guessing.label_levels import LEVELS_OF
from musicsim.library.db.columns import Labels


def snapshot_of(genres=(), artists=(), albums=None):
    """Build the part of a snapshot that levels are read from, with these labels."""

    def column(values):
        names = list(dict.fromkeys(v for v in values if v is not None))
        return Labels(np.array([-1 if v is None else names.index(v) for v in values], np.int32), names)

    n = max(len(genres), len(artists))
    columns = SimpleNamespace(
        genre=column(genres), artist=column(artists), group=Labels(np.arange(n, dtype=np.int32) // 2, [])
    )
    library = SimpleNamespace(albums=lambda: albums or {})
    return SimpleNamespace(columns=columns, library=library, row_ids=np.arange(n) + 1)


def said(levels):
    """Return the known names by song."""
    return [
        tuple(of[code] for of, code in zip(levels.names, row, strict=True) if code >= 0)
        for row in levels.codes.tolist()
    ]


@pytest.mark.parametrize(
    ("genres", "paths"),
    [
        (["Rock", "Jazz", None], [("Rock",), ("Jazz",), ()]),
        (["Rock / Indie", "Rock", "Jazz"], [("Rock", "Rock / Indie"), ("Rock",), ("Jazz",)]),
        (["Metal > Doom", "Metal > Black"], [("Metal", "Metal > Doom"), ("Metal", "Metal > Black")]),
        # no other name begins with the part before the slash
        (["Hip-Hop/Rap", "R&B/Soul"], [("Hip-Hop/Rap",), ("R&B/Soul",)]),
        (["a::b::c", "a::b::d", "a"], [("a", "a::b", "a::b::c"), ("a", "a::b", "a::b::d"), ("a",)]),
        (["/x", "/y"], [("/x",), ("/y",)]),
        ([None, None], [(), ()]),
    ],
)
def test_genre_is_nested_by_common_prefix(genres, paths):
    levels = LEVELS_OF["genre"](snapshot_of(genres))
    assert said(levels) == paths
    assert levels.tags == ("genre",) * levels.codes.shape[1]
    assert levels.apart.tolist() == [0, 0, 1, 1][: len(genres)]


def test_albums_belong_to_artists():
    levels = LEVELS_OF["artist"](
        snapshot_of(
            artists=["A", "A", "B", "B", None, "B"],
            albums={i: (name, None) for i, name in {1: "Hits", 2: "Hits", 3: "Hits", 5: "Lost"}.items()},
        )
    )
    assert said(levels) == [("A", "Hits"), ("A", "Hits"), ("B", "Hits"), ("B",), (), ("B",)]
    assert levels.tags == ("artist", "album")
    same = levels.apart[:, None] == levels.apart
    assert np.array_equal(same, np.eye(6, dtype=bool) | (np.add.outer(range(6), range(6)) == 1))


def test_artists_without_albums_are_one_level():
    levels = LEVELS_OF["artist"](snapshot_of(artists=["A", None]))
    assert (said(levels), levels.tags) == ([("A",), ()], ("artist",))
