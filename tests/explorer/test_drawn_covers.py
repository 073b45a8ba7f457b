"""Covers drawn from sound: one per song, in the color of its region, valid for any outline."""

from xml.etree import ElementTree

import numpy as np
import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.drawn_covers import draw_cover
from musicsim.explorer.snapshot.snapshot import take_snapshot


def deep_color(cover: bytes) -> str | None:
    *_, last = ElementTree.fromstring(cover).iter("{http://www.w3.org/2000/svg}stop")
    return last.get("stop-color")


def test_cover_shows_sound_and_region(tiny_library):
    now = take_snapshot(tiny_library)
    now.__dict__["clusters"] = {"2": np.arange(12) % 2, "4": np.arange(12) % 4}
    covers = [draw_cover(now, song_id) for song_id in now.row_ids.tolist()]
    assert len(set(covers)) > 4, "songs of one color differ in shape"
    assert [deep_color(cover) for cover in covers] == 6 * [deep_color(cover) for cover in covers[:2]]
    assert deep_color(covers[0]) != deep_color(covers[1])
    assert draw_cover(now, now.row_ids[0].item()) == covers[0]


def test_song_without_outline_or_region_has_cover(tiny_library, monkeypatch):
    now = take_snapshot(tiny_library)
    now.__dict__["clusters"] = {}
    monkeypatch.setattr(type(tiny_library), "outline", lambda *_: np.empty(0, dtype=np.float32))
    cover = draw_cover(now, tiny_library.songs()[0].id)
    assert deep_color(cover)
    assert b"nan" not in cover


def test_unknown_song_has_no_cover(tiny_library):
    with pytest.raises(NotFoundError):
        draw_cover(take_snapshot(tiny_library), 999)
