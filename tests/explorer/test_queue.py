"""The queue of the Listen page: the nearest songs first, then the walk, without repeats."""

from dataclasses import replace

import numpy as np
import pytest

from musicsim.audio import Descriptors
from musicsim.errors import NotFoundError
from musicsim.explorer.playlists.queue import Heard, QueueRequest, build_queue
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Examples, find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.sounds import open_library, write_song


def ids_of(items):
    return [item.song.id for item in items]


@pytest.fixture
def many(taught):
    """A snapshot of 200 songs, and its walk."""
    snapshot = take_snapshot(taught)
    return snapshot, Walk(snapshot)


def test_nearest_songs_come_first_then_walk_with_reasons(many):
    snapshot, walk = many
    first = int(snapshot.row_ids[5])
    items = build_queue(snapshot, walk, QueueRequest(query=first, length=60))
    nearest = {hit.song.id: hit.similarity for hit in find_similar(snapshot, first, 14)}
    for place, item in enumerate(items[:10]):
        assert item.similarity == nearest[item.song.id]
        assert all(item.similarity > later.similarity - 0.03 for later in items[place + 1 : 10])
    assert len(items) == len({*ids_of(items), first}) - 1 == 60
    assert all(item.similarity is None for item in items[10:])
    assert any(item.reason for item in items)


def test_queue_is_deterministic_and_longer_one_begins_the_same(many):
    snapshot, walk = many
    request = QueueRequest(query=int(snapshot.row_ids[5]), length=20)
    items = build_queue(snapshot, walk, request)
    assert ids_of(build_queue(snapshot, walk, request)) == ids_of(items)
    longer = build_queue(snapshot, walk, replace(request, length=70))
    assert ids_of(longer)[:20] == ids_of(items)
    assert len(longer) == 70
    other = build_queue(snapshot, walk, replace(request, seed=1))
    assert ids_of(other)[:10] != ids_of(items)[:10], "another evening"
    assert len({*ids_of(other)[:10], *ids_of(items)[:10]}) <= 14


def test_walk_stays_near_the_seed_until_it_may_surprise(many):
    snapshot, walk = many

    def ranks_of_walk(request):
        ranks = []
        for seed, row in enumerate(range(0, 200, 20)):
            distances = np.linalg.norm(snapshot.X - snapshot.X[row], axis=1)
            order = np.argsort(np.argsort(distances))
            items = build_queue(snapshot, walk, replace(request, query=int(snapshot.row_ids[row]), seed=seed))
            ranks += [order[snapshot.row_of(item.song.id)] for item in items if item.similarity is None]
        return np.array(ranks)

    ranks = ranks_of_walk(QueueRequest(length=22))
    # the nearest fifth of the 200 songs, in addition to those that were played before
    assert ranks.max() <= 40 + 23
    assert np.median(ranks) < 40
    assert np.median(ranks_of_walk(QueueRequest(length=22, surprise=0.9))) > 1.5 * np.median(ranks)


def test_long_queue_has_whole_library_once(many):
    snapshot, walk = many
    request = QueueRequest(query=int(snapshot.row_ids[0]), search=SearchRequest(per_artist=0), length=10_000)
    assert sorted([*ids_of(build_queue(snapshot, walk, request)), request.query]) == sorted(snapshot.row_ids.tolist())


def test_pins_keep_places_and_removed_songs_stay_away(many):
    snapshot, walk = many
    request = QueueRequest(query=int(snapshot.row_ids[5]), length=20)
    before = ids_of(build_queue(snapshot, walk, request))
    outside = next(i for i in snapshot.row_ids.tolist() if i not in [*before, request.query])
    pins = {2: before[7], 4: outside, 12: before[1]}
    items = build_queue(snapshot, walk, replace(request, pins=pins, removed=frozenset({before[0], before[15]})))
    assert {place: ids_of(items)[place] for place in pins} == pins
    assert [place for place, item in enumerate(items) if item.is_pinned] == [2, 4, 12]
    assert not {before[0], before[15]} & set(ids_of(items))
    assert len(set(ids_of(items))) == len(items)


def test_filters_hold_for_nearest_songs_and_walk(many):
    snapshot, walk = many
    first = int(snapshot.row_ids[5])
    lasting = np.median(snapshot.columns.duration_s)
    search = SearchRequest(duration_s=(0.0, float(lasting)), per_artist=0)
    items = build_queue(snapshot, walk, QueueRequest(query=first, search=search, length=40))
    assert len(items) == 40
    assert all(item.song.duration_s <= lasting for item in items)


def test_thumbs_rerank_at_once_and_heard_songs_stay(many):
    snapshot, walk = many
    request = QueueRequest(query=int(snapshot.row_ids[5]), length=20)
    items = build_queue(snapshot, walk, request)
    heard = tuple(Heard(item.song.id, item.reason, item.similarity) for item in items[:3])
    assert ids_of(build_queue(snapshot, walk, replace(request, heard=heard))) == ids_of(items), (
        "playing changes nothing"
    )
    thumbs = Thumbs().add(items[9].song.id, 1).add(items[4].song.id, -1)
    after = build_queue(snapshot, walk, replace(request, heard=heard, thumbs=thumbs))
    assert after[:3] == items[:3]
    assert items[4].song.id not in ids_of(after)
    assert ids_of(after).index(items[9].song.id) < 9


def test_queue_leads_to_target_and_goes_on(many):
    snapshot, walk = many
    first, target = int(snapshot.row_ids[5]), int(snapshot.row_ids[50])
    items = build_queue(snapshot, walk, QueueRequest(query=first, target=target, length=40))
    place = ids_of(items).index(target)
    assert 5 <= place < 20
    assert len(items) == 40


def test_surprise_shortens_nearest_songs(many):
    snapshot, walk = many
    request = QueueRequest(query=int(snapshot.row_ids[5]), surprise=0.9)
    assert [item.similarity is not None for item in build_queue(snapshot, walk, request)].count(True) == 1


def test_calmer_and_livelier_songs_follow(taught):
    ids = [song.id for song in taught.songs()]
    energies = dict(zip(ids, np.random.default_rng(0).permutation(len(ids)).tolist(), strict=True))
    taught.descriptors.save({i: Descriptors(energy=float(value)) for i, value in energies.items()})
    snapshot = take_snapshot(taught)
    walk = Walk(snapshot)
    middle = next(i for i, value in energies.items() if value == 100)
    request = QueueRequest(query=middle, length=20)
    highest = {}
    for calmer in (1, 2, 3):
        items = build_queue(snapshot, walk, replace(request, calmer=calmer))
        assert len(items) >= 12
        highest[calmer] = max(energies[i] for i in ids_of(items))
    assert 100 >= highest[1] > highest[2] > highest[3]
    assert min(energies[i] for i in ids_of(build_queue(snapshot, walk, replace(request, calmer=-1)))) >= 100
    assert ids_of(build_queue(snapshot, walk, replace(request, calmer=9))), "never empty"


def test_words_and_several_examples_start_queue(snapshot):
    walk = Walk(snapshot)
    noise = [song.id for song in snapshot.library.songs() if song.artist == "Artist noise"]
    words = QueueRequest(search=SearchRequest(words="genre noise", per_artist=0))
    assert set(ids_of(build_queue(snapshot, walk, words))) == set(noise)
    like = build_queue(snapshot, walk, QueueRequest(query=Examples(tuple(noise[:2]))))
    assert set(noise[2:]) == set(ids_of(like)[:2])
    assert not set(noise[:2]) & set(ids_of(like))


def test_without_walk_nearest_songs_are_there(snapshot):
    first = int(snapshot.row_ids[0])
    items = build_queue(snapshot, None, QueueRequest(query=first))
    assert set(ids_of(items)) <= {hit.song.id for hit in find_similar(snapshot, first, 14)}


def test_song_with_thumb_down_is_in_no_walk(tiny_library: Library):
    snapshot = take_snapshot(tiny_library)
    disliked = int(snapshot.row_ids[3])
    tiny_library.set_feedback(disliked, -1)
    walk = Walk(snapshot)
    for seed in range(5):
        assert disliked not in [song.id for song in walk.generate(PlaylistRequest(length=11), seed).songs]
    asked = walk.generate(PlaylistRequest(length=5, first=disliked), 0)
    assert asked.songs[0].id == disliked, "it was asked for"


@pytest.mark.parametrize("n_songs", [1, 2, 10])
def test_small_libraries(n_songs, tmp_path):
    for n in range(n_songs):
        write_song(tmp_path / "music" / f"{n}.wav", ("noise", "tones", "clicks")[n % 3], seed=n)
    with open_library(tmp_path / "library") as library:
        library.add(tmp_path / "music", n_workers=1)
        refresh(library)
        snapshot = take_snapshot(library)
        ids = snapshot.row_ids.tolist()
        items = build_queue(snapshot, Walk(snapshot), QueueRequest(query=ids[0]))
        assert sorted(ids_of(items)) == sorted(ids[1:])
        with pytest.raises(NotFoundError):
            build_queue(snapshot, None, QueueRequest(query=999))
