"""Judgements of answers: kept as they were said, in the place of those before, gone with their songs."""

from itertools import pairwise

import pytest

from musicsim.errors import NotFoundError
from musicsim.library import Library
from tests.library.forgetting import forget


def test_they_come_back_as_they_were_said_and_replace_those_before(tiny_library):
    a, b, c, d = [song.id for song in tiny_library.songs()[:4]]
    store = tiny_library.judgements
    store.keep(a, {d: 1, b: -1, c: 1})
    store.keep(b, {a: -1})
    assert list(store.of(a).items()) == [(d, 1), (b, -1), (c, 1)]
    assert store.all() == [(a, d, 1), (a, b, -1), (a, c, 1), (b, a, -1)]
    store.keep(a, {c: -1})
    assert store.of(a) == {c: -1}
    assert store.all() == [(b, a, -1), (a, c, -1)], "the newest last"
    store.keep(a, {})
    assert store.of(a) == {}
    assert store.all() == [(b, a, -1)]


def test_the_mark_moves_with_every_change(tiny_library):
    a, b, c = [song.id for song in tiny_library.songs()[:3]]
    store = tiny_library.judgements
    seen = [store.mark()]
    for judged in ({b: 1}, {c: 1}, {c: -1}, {}):
        store.keep(a, judged)
        seen.append(store.mark())
    assert all(one != other for one, other in pairwise(seen))
    assert seen[0] == seen[-1] == (0, 0.0)


def test_they_outlive_the_program_and_go_with_their_songs(tiny_library):
    a, b, c = [song.id for song in tiny_library.songs()[:3]]
    tiny_library.judgements.keep(a, {b: 1, c: -1})
    with Library.open(tiny_library.folder) as again:
        assert again.judgements.of(a) == {b: 1, c: -1}
        forget(again, b)
        assert again.judgements.of(a) == {c: -1}
        forget(again, a)
        assert again.judgements.all() == []


@pytest.mark.parametrize("judged", [{1: 1}, {2: 0}, {2: 3}])
def test_what_makes_no_sense_is_refused(tiny_library, judged):
    with pytest.raises(ValueError, match=r"judged=.*another song should be judged, and by 1 or -1"):
        tiny_library.judgements.keep(1, judged)


def test_a_song_that_has_gone_is_named_and_nothing_is_lost(tiny_library):
    a, b = [song.id for song in tiny_library.songs()[:2]]
    tiny_library.judgements.keep(a, {b: 1})
    with pytest.raises(NotFoundError, match="no longer in the library"):
        tiny_library.judgements.keep(a, {9999: 1})
    assert tiny_library.judgements.of(a) == {b: 1}
