"""Tests of what is offered when nothing is chosen."""

import time
from datetime import date, timedelta

import pytest

from musicsim.explorer.playlists.beginnings import find_beginnings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.db import schema

DAY_S = 24 * 3600.0


def play(library, song_id, days_ago):
    """Add a play in the app's player some days ago."""
    library.player_plays.add_play(song_id)
    newest = library.player_plays.latest()
    with library.write() as connection:
        rows = schema.judgments.update().where(schema.judgments.c.id == newest)
        connection.execute(rows.values(created_at=time.time() - days_ago * DAY_S))


@pytest.fixture
def songs(full):
    return [song.id for song in full.songs()]


def offered(library, **options):
    options = {"is_private": False} | options
    return {one.label: one.song_ids for one in find_beginnings(take_snapshot(library), date.today(), **options)}


def test_library_without_plays_offers_any_song(full, songs):
    (label,) = offered(full)
    assert label == "Something else today"
    assert set(offered(full)[label]) <= set(songs)


def test_plays_and_thumbs_decide_what_is_offered(full, songs):
    often, once, loved, loved_lately, disliked, long_ago = songs[:6]
    for song, days in ((often, 2), (often, 3), (once, 2), (loved_lately, 20), (long_ago, 200)):
        play(full, song, days)
    for song in (loved, loved_lately):
        full.set_feedback(song, 1)
    full.set_feedback(disliked, -1)
    found = offered(full)
    assert found["Around last week"] == (often, once)
    assert found["Loved, not played lately"] == (loved,)
    days = [date.today() + timedelta(days=n) for n in range(25)]
    others = {find_beginnings(take_snapshot(full), day, is_private=False)[-1].song_ids[0] for day in days[:1]}
    others |= {find_beginnings(take_snapshot(full), day, is_private=False)[-1].song_ids[0] for day in days}
    assert disliked not in others
    assert len(others) > 3, "every day has a song of its own"


def test_one_of_many_songs_is_a_surprise(full, songs):
    for song in songs[:11]:
        play(full, song, 1)
    around = offered(full)["Around last week"]
    assert len(around) == 12
    assert set(around[:11]) == set(songs[:11])
    assert around[11] not in songs[:11]


def test_disliked_song_is_never_offered(full, songs):
    for song in songs[1:]:
        full.set_feedback(song, -1)
    play(full, songs[2], 1)
    assert set(offered(full).values()) == {(songs[0],)}


def test_visitors_see_nothing_about_plays(full, songs):
    for song in songs:
        play(full, song, 1)
    assert list(offered(full, is_private=True)) == ["Something else today"]
    assert list(offered(full)) == ["Around last week"]
