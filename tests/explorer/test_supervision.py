"""Tests of supervision: similarity by the definition of each kind."""

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.learning.supervision import Supervision, coverage
from musicsim.explorer.requests.training import JUDGMENTS, TRAINING_KINDS
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.library.db import schema
from musicsim.library.stores.duplicates import SamePair


def rows_by_id(snapshot):
    ids = [song.id for song in snapshot.library.songs()]
    return dict(zip(ids, snapshot.rows_of(ids).tolist(), strict=True))


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 0.0


def lift(a, b):
    return len(a & b) / (len(a) * len(b)) if a and b else 0.0


@pytest.mark.parametrize("similarity", [jaccard, lift])
def test_plays_match_definition(taught, similarity):
    """The default is that of the thesis."""
    snapshot = take_snapshot(taught)
    database = np.arange(0, len(snapshot.songs_at()), 2)
    settings = {} if similarity is jaccard else {"overlap": "lift"}
    supervision = Supervision(snapshot, "plays", k=3, threshold=20, **settings)
    relevance = supervision.relevance(database)
    artist_of = {song.id: song.artist for song in snapshot.library.songs()}
    totals, heard = {}, {}
    plays = taught.plays()
    for who, song_id, n in zip(plays.listener.tolist(), plays.song_id.tolist(), plays.count.tolist(), strict=True):
        totals[who, artist_of[song_id]] = totals.get((who, artist_of[song_id]), 0) + n
    for (who, artist), n in totals.items():
        if n >= 20:
            heard.setdefault(artist, set()).add(who)
    known = sorted({snapshot.songs_at([row])[0].artist for row in database})
    for query in (0, 77, 199):
        own = snapshot.songs_at([query])[0].artist
        scores = {a: similarity(heard.get(own, set()), heard.get(a, set())) for a in known if a != own}
        third = sorted(scores.values())[-3]
        relevant = {snapshot.songs_at([row])[0].artist for row in relevance.relevant(query)}
        assert {a for a, s in scores.items() if s > third} <= relevant
        assert relevant <= {a for a, s in scores.items() if s >= third and s > 0}
        in_split = relevance.restrict([query], database)
        of_relevant = [database[i] for i in in_split.relevant(0)]
        assert {snapshot.songs_at([row])[0].artist for row in of_relevant} == relevant
        assert own not in {snapshot.songs_at()[database[i]].artist for i in in_split.irrelevant(0)}


def test_playlists_relate_songs_of_other_artists(taught):
    songs = taught.songs()
    one, two, three = songs[0], songs[40], songs[80]
    same = next(s for s in songs[1:] if s.artist == one.artist)
    taught.add_playlists([("a", None, [one.id, two.id, same.id]), ("b", None, [three.id, two.id])], source="test")
    snapshot = take_snapshot(taught)
    relevance = Supervision(snapshot, "playlists").relevance()
    row = rows_by_id(snapshot)
    assert relevance.relevant(row[one.id]).tolist() == [row[two.id]]
    assert sorted(relevance.relevant(row[two.id])) == sorted([row[one.id], row[same.id], row[three.id]])


def test_tags_relate_songs_with_common_tags(taught):
    songs = taught.songs()
    tagged = {
        songs[0].id: ["slow", "sad"],
        songs[50].id: ["slow", "sad"],
        songs[90].id: ["slow"],
        songs[140].id: ["loud"],
    }
    rows = [{"song_id": i, "tag": tag, "weight": 1.0} for i, tags in tagged.items() for tag in tags]
    taught.add_tags(rows)
    snapshot = take_snapshot(taught)
    relevance = Supervision(snapshot, "tags").relevance()
    row = rows_by_id(snapshot)
    assert sorted(relevance.relevant(row[songs[0].id])) == sorted([row[songs[50].id], row[songs[90].id]])
    assert not len(relevance.relevant(row[songs[140].id]))


def test_artist_supervision_searches_itself(taught):
    snapshot = take_snapshot(taught)
    supervision = Supervision(snapshot, "artist")
    assert supervision.searches_itself
    relevance = supervision.relevance()
    for query in (0, 100):
        of_artist = {r for r, s in enumerate(snapshot.songs_at()) if s.artist == snapshot.songs_at([query])[0].artist}
        assert set(relevance.relevant(query).tolist()) == of_artist - {query}


def test_genre_supervision_excludes_own_artist(taught):
    snapshot = take_snapshot(taught)
    relevance = Supervision(snapshot, "genre").relevance()
    query = snapshot.songs_at([3])[0]
    relevant = [snapshot.songs_at([row])[0] for row in relevance.relevant(3)]
    assert relevant
    assert {song.genre for song in relevant} == {query.genre}
    assert query.artist not in {song.artist for song in relevant}


@pytest.mark.parametrize("kind", ["playlists", "tags", "sittings"])
def test_missing_supervision_suggests_import(taught, kind):
    with pytest.raises(ModelError, match="import"):
        Supervision(take_snapshot(taught), kind)


def test_plays_need_several_listeners(taught):
    with taught.write() as connection:
        connection.exec_driver_sql("DELETE FROM plays")
    taught.add_plays([{"listener": "me", "song_id": taught.songs()[0].id, "count": 50}])
    with pytest.raises(ModelError, match="several people"):
        Supervision(take_snapshot(taught), "plays")


def test_coverage_counts_songs_with_relevant_songs(taught):
    taught.add_tags([{"song_id": s.id, "tag": "x", "weight": 1.0} for s in (taught.songs()[0], taught.songs()[99])])
    found = {entry.kind: entry for entry in coverage(take_snapshot(taught))}
    assert list(found) == list(TRAINING_KINDS)
    assert (found["tags"].n_songs, found["tags"].share) == (2, 2 / 200)
    assert found["tags"].lacks
    assert found["genre"].share == 1.0
    assert not found["plays"].lacks
    assert found["playlists"].n_songs == 0
    assert found["playlists"].lacks


@pytest.fixture
def copies(taught):
    """Return two songs with the same sound, and another one."""
    first, second, other = (song.id for song in taught.songs()[:3])
    taught.duplicates.enter([SamePair(first, second, 0.99, 0.0)], [])
    assert set(take_snapshot(taught).representative_of) < {first, second}
    return first, second, other


@pytest.mark.parametrize("newest", [1, -1])
def test_latest_thumb_on_duplicates_counts(taught, copies, newest):
    first, second, other = copies
    taught.judgments.rate_results(first, {other: -newest})
    taught.judgments.rate_results(second, {other: newest})
    snapshot = take_snapshot(taught)
    supervision, row = Supervision(snapshot, JUDGMENTS), rows_by_id(snapshot)
    relevance = supervision.relevance()
    in_favour = relevance.relevant if newest > 0 else relevance.irrelevant
    against = relevance.irrelevant if newest > 0 else relevance.relevant
    assert in_favour(row[first]).tolist() == [row[other]]
    assert against(row[first]).tolist() == []
    assert supervision.detail == "1 thumb on results of 1 search", "one opinion, counted once"
    (thumbs,) = (entry for entry in coverage(snapshot) if entry.kind == JUDGMENTS)
    assert thumbs.n_songs == (newest > 0)


def test_thumbs_on_duplicate_results_are_merged(taught, copies):
    first, second, other = copies
    taught.judgments.rate_results(other, {first: 1, second: -1})
    snapshot = take_snapshot(taught)
    relevance, row = Supervision(snapshot, JUDGMENTS).relevance(), rows_by_id(snapshot)
    assert relevance.irrelevant(row[other]).tolist() == [row[first]]
    assert relevance.relevant(row[other]).tolist() == []


def test_searches_from_songs_without_row_are_ignored(taught):
    gone, here, other = (song.id for song in taught.songs()[:3])
    taught.judgments.rate_results(gone, {other: 1})
    taught.judgments.rate_results(here, {other: 1})
    with taught.write() as connection:
        connection.execute(schema.files.delete().where(schema.files.c.song_id == gone))
    snapshot = take_snapshot(taught)
    assert snapshot.rows_of([gone])[0] == -1
    assert Supervision(snapshot, JUDGMENTS).detail == "1 thumb on results of 1 search"


def test_unreadable_supervision_leaves_other_kinds(taught, monkeypatch):
    def broken(_):
        raise ValueError("row 3 makes no sense.")

    monkeypatch.setattr(Snapshot, "tags_of", broken)
    found = {entry.kind: entry for entry in coverage(take_snapshot(taught))}
    assert found["tags"].lacks == "row 3 makes no sense."
    assert not found["plays"].lacks
