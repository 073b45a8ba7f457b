"""Tests of the mixes of a day: their songs are the right ones, and another run gives the same."""

from datetime import date, datetime, time, timedelta

import numpy as np
import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.playlists.beginnings import count_plays
from musicsim.explorer.playlists.fit import collect_playlists
from musicsim.explorer.snapshot.last_plays import read_last_plays
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.daily.mixes import SOURCE, make_daily_mixes, read_state, undo_daily_mixes
from musicsim.extensions.daily.options import DailyOptions, change_settings
from tests.plays import add_listens

DAY = date(2026, 11, 26)


def add_plays(library, ids, days_ago):
    """Store plays in this player at noon, some days before the day of the tests."""
    at = datetime.combine(DAY - timedelta(days=days_ago), time(12)).timestamp()
    rows = [{"created_at": at, "listener": "", "kind": "play", "song_1": i, "context": {}} for i in ids]
    library.judgments.insert(rows)


def mixes_of(run):
    return {mix.name.removeprefix("Daily mix: "): mix for mix in run.mixes}


def songs_of(run):
    return {i for mix in run.mixes for i in mix.song_ids}


def test_mixes_last_an_hour_and_repeat_on_the_same_day(many):
    add_plays(many, [song.id for song in many.songs()[:12]], days_ago=2)
    run = make_daily_mixes(many, DAY)
    assert len(run.mixes) == 6
    for mix in run.mixes:
        assert 58 * 60 <= mix.duration_s <= 62 * 60
        assert mix.duration_s == pytest.approx(sum(song.duration_s for song in many.songs(mix.song_ids)))
        assert len(set(mix.song_ids)) == len(mix.song_ids)
    assert len(songs_of(run)) == sum(len(mix.song_ids) for mix in run.mixes), "no song is in two mixes"
    assert make_daily_mixes(many, DAY).mixes == run.mixes


def test_mix_around_last_week_is_near_the_songs_played_then(many):
    songs = many.songs()
    heard = [song.id for song in songs if song.genre == songs[0].genre][:8]
    add_plays(many, heard, days_ago=3)
    add_plays(many, [song.id for song in songs if song.genre != songs[0].genre][:50], days_ago=8)
    mix = mixes_of(make_daily_mixes(many, DAY))["around last week"]
    assert all(f"“{title}”" in mix.why for title in [song.title for song in many.songs(heard)][:1])
    snapshot = take_snapshot(many)
    seeds = snapshot.vectors_at(snapshot.rows_of(heard)).astype(np.float64)
    nearest = np.min([np.linalg.norm(snapshot.X - seed, axis=1) for seed in seeds], axis=0)
    rank = nearest.argsort().argsort()[snapshot.rows_of(mix.song_ids)] / snapshot.n_indexed
    assert np.median(rank) < 0.25


def test_plays_since_a_time_are_counted_in_all_sources(tiny_library):
    first, second, third, fourth = (song.id for song in tiny_library.songs()[:4])
    add_listens(tiny_library, [(first, "me", [50, 99, 100]), (first, "you", [200]), (second, "me", [99])])
    rows = [{"created_at": at, "listener": "", "kind": "play", "song_1": i, "context": {}}
            for i, at in ((first, 300.0), (third, 100.0), (third, 50.0), (fourth, 99.0))]  # fmt: skip
    tiny_library.judgments.insert(rows)
    assert count_plays(tiny_library, 100.0, read_last_plays(tiny_library)) == {first: 3, third: 1}


def test_loved_mix_has_loved_songs_without_recent_plays(many):
    ids = [song.id for song in many.songs()]
    thumbs, stars, played, down = ids[:20], ids[20:40], ids[40:60], ids[60]
    for song_id in (*thumbs, down):
        many.set_feedback(song_id, 1)
    many.add_tags([{"song_id": i, "tag": "loved", "weight": 1.0} for i in stars])
    many.add_plays([{"listener": "me", "song_id": i, "count": 9} for i in played])
    recent = {*thumbs[:10], *stars[:10], *played[:10]}
    add_plays(many, sorted(recent), days_ago=89)
    add_plays(many, [*thumbs[10:], *stars[10:]], days_ago=91)
    many.set_feedback(down, -1)
    mix = mixes_of(make_daily_mixes(many, DAY))["loved, not played lately"]
    assert set(mix.song_ids) <= {*thumbs, *stars, *played} - recent
    assert "30 songs" in mix.why
    assert "2026-08-28" in mix.why


def test_region_mixes_are_from_the_largest_regions(many):
    clusters = take_snapshot(many).clusters["16"]
    snapshot = take_snapshot(many)
    largest = np.sort(np.bincount(clusters))[::-1][:5]
    run = make_daily_mixes(many, DAY)
    assert len(run.mixes) == 5
    found = []
    for mix in run.mixes:
        (cluster,) = set(clusters[snapshot.rows_of(mix.song_ids)].tolist())
        found.append(int(np.sum(clusters == cluster)))
    assert found == largest.tolist()


def test_a_new_day_has_new_songs_and_replaces_the_old_mixes(many):
    add_plays(many, [song.id for song in many.songs()[:12]], days_ago=2)
    first = make_daily_mixes(many, DAY)
    second = make_daily_mixes(many, DAY + timedelta(days=1))
    around = mixes_of(second)["around last week"]
    assert not set(around.song_ids) & songs_of(first)
    saved = many.playlists(source=SOURCE)
    assert {(one.name, one.song_ids) for one in saved} == {(mix.name, mix.song_ids) for mix in second.mixes}
    assert all(one.is_generated and one.details["notes"] for one in saved)
    assert undo_daily_mixes(many).mixes == first.mixes
    assert {one.song_ids for one in many.playlists(source=SOURCE)} == {mix.song_ids for mix in first.mixes}
    assert undo_daily_mixes(many) is None
    assert many.playlists(source=SOURCE) == []
    with pytest.raises(NotFoundError, match="no daily mixes to undo"):
        undo_daily_mixes(many)
    assert read_state(many).last_day == "2026-11-27", "undone mixes are not made again on this day"


def test_models_neither_learn_from_mixes_nor_become_outdated(many):
    with many.note_refresh():
        pass
    make_daily_mixes(many, DAY)
    assert many.is_refreshed
    assert collect_playlists(take_snapshot(many)).rows == []


def test_missing_reasons_are_named(many):
    skipped = {one.name.removeprefix("Daily mix: "): one.reason for one in make_daily_mixes(many, DAY).skipped}
    assert skipped == {
        "around last week": "No plays of the last seven days are known.",
        "loved, not played lately": "No song has a thumbs-up, a star, a high rating or many plays.",
    }
    add_plays(many, [1], days_ago=10)
    many.set_feedback(1, 1)
    skipped = {one.name.removeprefix("Daily mix: "): one.reason for one in make_daily_mixes(many, DAY).skipped}
    assert skipped["loved, not played lately"] == "0 loved songs without a play since 2026-08-28; 3 are needed."
    assert skipped["around last week"] == "No plays of the last seven days are known."


def test_files_follow_the_mixes(many, tmp_path):
    folder = tmp_path / "lists"
    change_settings(many, DailyOptions(folder=str(folder)))
    (folder / "mine.m3u8").parent.mkdir()
    (folder / "mine.m3u8").write_text("#EXTM3U\n")
    add_plays(many, [1, 2, 3], days_ago=2)
    run = make_daily_mixes(many, DAY)
    paths = {song.id: song.path for song in many.songs()}
    for mix, file in zip(run.mixes, run.written.files, strict=True):
        lines = (folder / file).read_text("utf-8").splitlines()
        assert [line for line in lines if not line.startswith("#")] == [str(paths[i]) for i in mix.song_ids]
    undo_daily_mixes(many)
    assert [path.name for path in folder.iterdir()] == ["mine.m3u8"]
    assert not run.written.problems
    (tmp_path / "file").touch()
    change_settings(many, DailyOptions(folder=str(tmp_path / "file")))
    run = make_daily_mixes(many, DAY)
    assert run.mixes
    assert len(run.written.problems) == len(run.mixes)
    assert "file" in run.written.problems[0]


def test_mixes_undone_while_others_are_made_stay_undone(many):
    for days in (2, 1):
        make_daily_mixes(many, DAY - timedelta(days=days))
    undone = []

    def undo_once(*_, **__):
        if not undone:
            undone.append(undo_daily_mixes(many))

    make_daily_mixes(many, DAY, undo_once)
    assert [run.day for run in read_state(many).runs] == [f"{DAY}", f"{DAY - timedelta(days=2)}"]
