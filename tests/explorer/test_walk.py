"""Playlists of a library: fitted on its lists, explained at every step, going on from what stands."""

import pytest

from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot import take_snapshot
from musicsim.explorer.training import refresh
from musicsim.explorer.walk import Walk


def test_every_step_is_explained_and_no_song_comes_twice(snapshot):
    drawn = Walk(snapshot).draw(8, random_state=1)
    assert len(drawn.songs) == len({s.id for s in drawn.songs}) == len(drawn.edges) == 8
    assert all(edge.reason for edge in drawn.edges)


def test_the_first_song_is_the_one_that_was_asked_for(snapshot):
    first = snapshot.songs[3].id
    assert Walk(snapshot).draw(4, first=first, random_state=0).songs[0].id == first


def test_songs_of_one_artist_are_spaced_as_far_as_the_collection_allows(snapshot):
    for seed in range(20):
        artists = [s.artist for s in Walk(snapshot).draw(9, random_state=seed).songs]
        # three artists: two songs of others between two of one
        assert all(a not in artists[max(0, i - 2) : i] for i, a in enumerate(artists))


def test_going_on_keeps_what_stands(snapshot):
    walk = Walk(snapshot)
    keep = [s.id for s in walk.draw(6, random_state=1).songs[:3]]
    again = walk.draw(6, keep=keep, random_state=9)
    assert [s.id for s in again.songs[:3]] == keep
    assert len(again.songs) == 6


def test_excluded_songs_do_not_come(snapshot):
    barred = [s.id for s in snapshot.songs[:6]]
    drawn = Walk(snapshot).draw(6, exclude=barred, random_state=2)
    assert not {s.id for s in drawn.songs} & set(barred)


def test_a_list_longer_than_the_collection_says_so(snapshot):
    drawn = Walk(snapshot).draw(50, random_state=0)
    assert len(drawn.songs) == 12
    assert drawn.note


def test_the_edge_that_was_taken_is_kept_and_new_pairs_get_the_likeliest(snapshot):
    walk = Walk(snapshot)
    drawn = walk.draw(5, random_state=3)
    ids = [s.id for s in drawn.songs]
    taken = {
        pair: edge
        for *pair_, edge in zip(ids, ids[1:], drawn.edges[1:], strict=False)
        for pair in [tuple(pair_)]
    }
    assert walk.explain(ids, taken).edges[1:] == drawn.edges[1:]
    swapped = [ids[1], ids[0], *ids[2:]]
    explained = walk.explain(swapped, taken)
    assert explained.edges[3:] == drawn.edges[3:]
    assert explained.edges[1].reason == walk.reasons(swapped[0], swapped[1])[0].reason


def test_reasons_of_a_pair_sum_to_one(snapshot):
    a, b = snapshot.songs[0], snapshot.songs[1]
    reasons = Walk(snapshot).reasons(a.id, b.id)
    assert sum(edge.probability for edge in reasons) == pytest.approx(1.0)
    assert f"both by {a.artist}" in {edge.reason for edge in reasons}


def test_weights_follow_the_librarys_playlists(tiny_library):
    by_artist = {}
    for song in tiny_library.songs():
        by_artist.setdefault(song.artist, []).append(song.id)
    lists = [(f"{artist} {n}", None, ids) for artist, ids in by_artist.items() for n in range(30)]
    tiny_library.add_playlists(lists, source="test")
    refresh(tiny_library)
    walk = Walk(take_snapshot(tiny_library))
    assert walk.n_playlists == 90
    artists = [s.artist for s in walk.draw(4, spacing=0, surprise=1.0, random_state=0).songs]
    assert len(set(artists)) == 1, "lists that keep to an artist make a walk that does"


def test_without_surprise_the_walk_goes_anywhere_only_when_it_must(tiny_library):
    walk = Walk(take_snapshot(tiny_library))

    def share(surprise: float) -> float:
        drawn = [walk.draw(4, spacing=0, surprise=surprise, random_state=seed) for seed in range(30)]
        reasons = [edge.reason for d in drawn for edge in d.edges[1:]]
        return reasons.count("anywhere in the collection") / len(reasons)

    assert share(0.0) == 0.0
    assert share(1.0) > 0.02


def test_wrong_requests_are_named(snapshot, store):
    with pytest.raises(ValueError, match=r"surprise=1\.5"):
        Walk(snapshot).draw(3, surprise=1.5)
    with pytest.raises(NotFoundError, match="song 999"):
        Walk(snapshot).draw(3, first=999)
    with pytest.raises(NotFoundError, match="no songs to make a playlist of"):
        Walk(take_snapshot(store)).draw(3)
