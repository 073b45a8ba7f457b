"""Tests of factors: rankings against brute force, songs without a factor, sound from outside, and the queue."""

import numpy as np
import pytest

from musicsim.audio import FLUCTUATION_SIZE
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.playlists import queue
from musicsim.explorer.playlists.queue import QueueRequest, build_queue
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.joined_model import join_models
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.search.requested import find_requested, part_of
from musicsim.explorer.snapshot.factor_view import FactorView, compare_in
from musicsim.explorer.snapshot.factors import Factors, list_factors
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.kernels import harmony_kernel
from musicsim.progress import no_progress


@pytest.fixture
def library(own_styles):
    return own_styles


def squared_distances(library, factor):
    """Compute the squared distances of all pairs of rows from what is stored, (n, n)."""
    sound = take_snapshot(library)
    if factor == "harmony":
        hashes = [song.content_hash for song in sound.songs_at()]
        return 2 - 2 * harmony_kernel(library.frame_files.aspects(hashes).harmony, key_invariant=True)
    features, is_own = library.models.features(sound.record.id), np.zeros(sound.record.n_features, dtype=bool)
    is_own[820 : 820 + FLUCTUATION_SIZE] = True
    place_of = {song_id: place for place, song_id in enumerate(features.song_ids.tolist())}
    X = sound.model.map_features(features.X[[place_of[i] for i in sound.row_ids.tolist()]])
    X = (X * (is_own if factor == "rhythm" else ~is_own)).astype(np.float64) @ sound.model.axes_.T
    return np.square(X[:, None] - X[None]).sum(axis=2)


@pytest.mark.parametrize("factor", ["timbre", "rhythm", "harmony"])
def test_ranking_by_a_factor_matches_brute_force(library, factor):
    truth, sound = squared_distances(library, factor), take_snapshot(library)
    width = truth[np.triu_indices(len(truth), 1)].mean()
    for row in (0, 7):
        hits = find_similar(
            compare_in(sound, factor), int(sound.row_ids[row]), len(truth), max_per_artist=None, hub_reduction=True
        )
        found = sound.rows_of([hit.song.id for hit in hits])
        assert sorted(found.tolist()) == np.delete(np.arange(len(truth)), row).tolist()
        # vectors are float32, so nearly equal distances may change places
        assert (np.diff(truth[row, found]) >= -1e-4 * width).all()
        np.testing.assert_allclose([hit.distance**2 for hit in hits], truth[row, found] / width, rtol=2e-3, atol=1e-5)


def test_timbre_and_rhythm_add_up_to_sound(library):
    sound = take_snapshot(library)
    factors, rows = Factors(sound), np.arange(sound.n_indexed)
    parts = [factors.vectors(name, rows).astype(np.float64) for name in ("timbre", "rhythm")]
    both = sum(np.square(X[:, None] - X[None]).sum(axis=2) for X in parts)
    X = sound.X.astype(np.float64)
    np.testing.assert_allclose(both, np.square(X[:, None] - X[None]).sum(axis=2), rtol=1e-12, atol=1e-12)


def test_filters_examples_and_limit_apply_to_rankings_by_a_factor(library):
    sound = take_snapshot(library)
    first, second = sound.row_ids[:2].tolist()
    request = SearchRequest(by="rhythm", k=8, per_artist=1, like=(second,), no_artists=frozenset({"Artist 3"}))
    hits = find_requested(sound, first, request)
    artists = [hit.song.artist for hit in hits]
    assert len(set(artists)) == len(artists) == 8
    assert "Artist 3" not in artists
    assert {first, second}.isdisjoint(hit.song.id for hit in hits)
    view = compare_in(sound, "rhythm")
    X = view.vectors_at(np.arange(sound.n_indexed)).astype(np.float64)
    inverse = [np.mean([np.square(X[row] - X[at]).sum() ** -1.0 for at in (0, 1)]) for row in range(2, len(X))]
    best = np.array(inverse)[sound.rows_of([hit.song.id for hit in hits]) - 2]
    assert (np.diff(best) <= 1e-4 * best[:-1]).all()


def test_songs_without_harmony_are_left_out_and_counted(library):
    sound = take_snapshot(library)
    *missing, query = sound.songs_at()[:4]
    for song in missing:
        library.frame_files.aspects_path(song.content_hash).unlink()
    view = compare_in(sound, "harmony")
    assert view.count_missing() == 3
    assert compare_in(sound, "rhythm").count_missing() == 0
    hits = find_similar(view, query.id, 100, max_per_artist=None)
    assert {hit.song.id for hit in hits} == set(sound.row_ids.tolist()) - {query.id, *(song.id for song in missing)}
    with pytest.raises(NotFoundError, match="has no harmony: scan its folder again"):
        find_similar(view, missing[0].id)
    for song in sound.songs_at():
        library.frame_files.aspects_path(song.content_hash).unlink(missing_ok=True)
    with pytest.raises(NotFoundError, match=r"^by='harmony': .*Choose one of timbre, rhythm[.]$"):
        compare_in(sound, "harmony")


def test_unknown_factor_lists_the_known_ones(library):
    with pytest.raises(NotFoundError, match=r"^by='tempo': .*Choose one of timbre, rhythm, harmony[.]$"):
        find_requested(take_snapshot(library), 1, SearchRequest(by="tempo"))


def test_equal_distances_keep_the_order_of_rows(library):
    class Same:
        def vectors(self, _name, rows):
            return np.where(rows[:, None] % 2, 1, 0).astype(np.float32) * np.ones(2, np.float32)

    sound = take_snapshot(library)
    view = FactorView(library, sound.revision, sound.model_id, factors=Same(), factor="rhythm", scale=1.0)
    order = [*range(0, sound.n_indexed, 2), *range(1, sound.n_indexed, 2)]
    assert view.nearest(np.zeros(2, np.float32), 100).tolist() == order
    is_allowed = np.arange(sound.n_indexed) > 3
    assert view.nearest(np.zeros(2, np.float32), 3, allowed=is_allowed).tolist() == [4, 6, 8]


def test_joined_model_is_a_factor(library):
    snapshot = take_snapshot(library, join_models(library, ["Sound", "Codewords"], "Both", no_progress))
    assert list_factors(snapshot) == ["timbre", "rhythm", "harmony", "Codewords"]
    assert list_factors(take_snapshot(library, library.models.native().id)) == ["timbre", "rhythm", "harmony"]
    codewords = take_snapshot(library, library.models.find("Codewords").id)
    query = int(codewords.row_ids[4])
    expected = find_similar(codewords, query, 12, max_per_artist=None, hub_reduction=False)
    found = find_requested(snapshot, query, SearchRequest(by="Codewords", k=12, per_artist=0))
    assert [hit.song.id for hit in found] == [hit.song.id for hit in expected]


def test_sound_from_outside_is_compared_in_timbre_and_rhythm(library):
    sound = take_snapshot(library)
    song = sound.songs_at([3])[0]
    view = compare_in(sound, "rhythm")
    whole = view.vector_of(library.frame_files.frames(song.content_hash))
    np.testing.assert_allclose(whole, view.vectors_at([3])[0], atol=1e-4)  # stored features are float32
    part = part_of(sound, song.id, 0.0, 1.5)
    found = find_requested(sound, song.id, SearchRequest(part=(0.0, 1.5), by="rhythm", k=30, per_artist=0))
    distances = np.linalg.norm(view.vectors_at(np.arange(sound.n_indexed)) - view.vector_of(part.frames), axis=1)
    assert [hit.distance for hit in found] == pytest.approx(np.sort(np.delete(distances, 3)).tolist(), rel=1e-5)
    with pytest.raises(ModelError, match=r"^by='harmony': choose a song of the library"):
        find_requested(sound, song.id, SearchRequest(part=(0.0, 1.5), by="harmony"))


def test_queue_starts_with_the_nearest_in_the_factor(library, monkeypatch):
    snapshot, search = take_snapshot(library), SearchRequest(by="rhythm", k=6)
    query = int(snapshot.row_ids[0])
    nearest = {hit.song.id: hit.similarity for hit in find_requested(snapshot, query, SearchRequest(by="rhythm", k=10))}
    monkeypatch.setattr(queue, "load_hooks", lambda _: [lambda *_: pytest.fail("a hook replaced the nearest songs")])
    items = build_queue(snapshot, Walk(snapshot), QueueRequest(query=query, search=search, length=6))
    assert [item.similarity for item in items] == [nearest[item.song.id] for item in items]
    assert set(nearest) != {hit.song.id for hit in find_requested(snapshot, query, SearchRequest(k=10))}
