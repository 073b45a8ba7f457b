"""Tests of duplicates: found after a scan, one result for all, separated and merged by the listener."""

import numpy as np
import pytest
import soundfile

from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.same_sound import find_new_duplicates, groups
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.stores.duplicates import SamePair
from tests.sounds import SAMPLE_RATE, sound


@pytest.fixture
def library(store, tmp_path):
    """Build nine songs, two of them also in another encoding."""
    rng = np.random.default_rng(3)
    for n in range(9):
        # Each has its own melody and rhythm, long enough that two cannot agree by chance.
        y = sound("tones", n, 24.0) * np.repeat(rng.uniform(0.1, 1, 97), SAMPLE_RATE // 4)[: 24 * SAMPLE_RATE]
        (tmp_path / "music").mkdir(exist_ok=True)
        soundfile.write(tmp_path / f"music/song {n}.flac", y, SAMPLE_RATE)
        if n < 2:
            soundfile.write(tmp_path / f"music/song {n} copy.ogg", 0.5 * y, SAMPLE_RATE)
    store.add(tmp_path / "music")
    assert refresh(store)
    return store


def by_title(library):
    return {song.title: song.id for song in library.songs()}


@pytest.mark.long
def test_duplicates_in_other_encodings_are_found(library):
    snapshot = take_snapshot(library)
    ids = by_title(library)
    assert snapshot.representative_of == {ids[f"song {n} copy"]: ids[f"song {n}"] for n in range(2)}, (
        "no loss goes first"
    )
    assert len(snapshot.songs_at()) == len(snapshot.X) == 9
    assert library.duplicates.not_compared() == set()


@pytest.mark.long
def test_duplicate_query_gives_results_of_song(library):
    snapshot, ids = take_snapshot(library), by_title(library)
    answers = [hit.song.title for hit in find_similar(snapshot, ids["song 0"], 20, max_per_artist=None)]
    assert sorted(answers) == [f"song {n}" for n in range(1, 9)]
    of_copy = [hit.song.title for hit in find_similar(snapshot, ids["song 0 copy"], 20, max_per_artist=None)]
    assert of_copy == answers


def test_playlists_contain_each_sound_once(library):
    library.add_playlists([("mine", None, [by_title(library)["song 0 copy"], by_title(library)["song 3"]])], "test")
    drawn = Walk(take_snapshot(library)).generate(PlaylistRequest(length=9), 0)
    assert sorted(song.title for song in drawn.songs) == [f"song {n}" for n in range(9)]
    first = Walk(take_snapshot(library)).generate(PlaylistRequest(length=1, first=by_title(library)["song 1 copy"]), 0)
    assert first.songs[0].title == "song 1"


def test_separated_duplicates_stay_separate_and_can_be_joined(library):
    ids = by_title(library)
    pair = [ids["song 0"], ids["song 0 copy"]]
    assert library.duplicates.judge(pair, is_same=False) == 1
    assert ids["song 0 copy"] in {song.id for song in take_snapshot(library).songs_at()}
    refresh(library)
    assert [p.is_same for p in library.duplicates.pairs()] in ([False, True], [True, False])
    library.duplicates.judge(pair, is_same=True)
    assert ids["song 0 copy"] in take_snapshot(library).representative_of


@pytest.mark.long
def test_duplicate_replaces_missing_song(library):
    ids = by_title(library)
    library.song(ids["song 0"]).path.unlink()
    library.add(library.files.roots())
    snapshot = take_snapshot(library)
    assert snapshot.songs_at()[snapshot.rows_of([ids["song 0 copy"]])[0]].title == "song 0 copy"


@pytest.mark.long
def test_new_songs_are_compared_with_old_ones(library, tmp_path):
    y, sr = soundfile.read(tmp_path / "music/song 5.flac")
    soundfile.write(tmp_path / "music/late copy.ogg", y, sr)
    library.add(tmp_path / "music")
    refresh(library)
    ids = by_title(library)
    assert take_snapshot(library).representative_of[ids["late copy"]] == ids["song 5"]


def test_pairs_of_an_earlier_version_are_compared_again(library):
    ids = by_title(library)
    wrong, judged = sorted([ids["song 2"], ids["song 3"]]), sorted([ids["song 4"], ids["song 5"]])
    library.duplicates.enter([SamePair(*wrong, 0.83, 0.0), SamePair(*judged, 0.83, 0.0, is_same=False)], [])
    library.set_text("duplicates_rule", "1")
    library.add(library.files.roots())
    assert refresh(library)
    pairs = {(p.first_id, p.second_id) for p in library.duplicates.pairs()}
    assert tuple(wrong) not in pairs
    assert tuple(judged) in pairs  # a listener's decision
    assert {tuple(sorted([ids[f"song {n}"], ids[f"song {n} copy"]])) for n in range(2)} <= pairs


def test_pairs_without_frames_are_kept(library):
    pairs = library.duplicates.pairs()
    for path in library.frame_files.folder.glob("??/*"):
        path.unlink()
    library.set_text("duplicates_rule", "1")
    find_new_duplicates(library, lambda text: None)
    assert library.duplicates.pairs() == pairs


def test_pairs_merge_into_groups(library):
    songs = library.songs()[:5]
    a, b, c, d, e = (song.id for song in songs)
    pairs = [SamePair(a, b, 1.0, 0.0), SamePair(b, c, 1.0, 0.0), SamePair(d, e, 1.0, 0.0, False)]
    assert [{song.id for song in group} for group in groups(songs, pairs)] == [{a, b, c}]
    assert groups(songs, []) == []
