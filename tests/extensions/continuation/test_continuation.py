"""Tests of continuing held-out lists: ways by brute force, splits, and a library's own lists."""

import shutil
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.continuation import continuation
from musicsim.extensions.continuation.continuation import (
    ARTIST,
    ITEM_KNN,
    MEASURES,
    POPULARITY,
    SOUND,
    WALK,
    ContinuationTask,
    Continued,
    continue_lists,
    lists_of,
    measure,
    n_long_lists,
    parts_of,
    recommend,
    split,
    task_of,
    ways,
)
from musicsim.library import Library
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from musicsim.playlist import PlaylistModel, build_edges
from musicsim.progress import Canceled

GROUPS = 3


def made_up(n_lists=150, n_songs=60, seed=0):
    """Make lists of eight songs from one of three groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n_songs) % GROUPS
    return [rng.permutation(np.flatnonzero(group == g))[:8].tolist() for g in rng.integers(GROUPS, size=n_lists)]


def task_about(lists, n_songs=60, **known):
    """Build a task for one fold of the lists, and return its held-out songs. The groups are artists, and far apart."""
    train, begun, taken = split(lists, parts_of(lists, 0)[0])
    group = np.arange(n_songs) % GROUPS
    graph = build_edges(n_songs, artists=[f"artist {g}" for g in group])
    known = {"artists": group, "vectors": np.eye(GROUPS)[group]} | known
    return ContinuationTask(n_songs, train, begun, PlaylistModel(graph).fit, **known), taken


# --- shown and held-out songs ------------------------------------------------------------


def test_folds_cover_all_long_playlists_without_leakage():
    lists = [*made_up(), [1, 2, 3], [4, 4, 4, 4, 4, 4]]
    parts = parts_of(lists, 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(150)), "two are too short to be judged"
    for part in parts:
        train, begun, taken = split(lists, part)
        assert (len(train), len(begun)) == (122, 30)
        assert train == [songs for at, songs in enumerate(lists) if at not in set(part.tolist())]
        for at, first, rest in zip(part, begun, taken, strict=True):
            assert (len(first), len(rest)) == (4, 4)
            assert first + rest == lists[at]


def test_repeated_song_is_not_target():
    _, begun, taken = split([[1, 2, 3, 1, 4, 5, 6, 7]], np.array([0]))
    assert (begun, taken) == ([[1, 2, 3, 4]], [[5, 6, 7]])


@pytest.mark.parametrize("n", [9, 700])
def test_recommendations_match_brute_force(n):
    rng = np.random.default_rng(n)
    scores, begun = rng.integers(4, size=n).astype(float), rng.permutation(n)[:3].tolist()
    brute = sorted(set(range(n)) - set(begun), key=lambda song: (-scores[song], song))[:500]
    assert recommend(scores, begun).tolist() == brute


def test_playlist_of_all_songs_gives_no_recommendations():
    assert recommend(np.ones(3), [0, 1, 2]).tolist() == []


# --- each way by brute force ------------------------------------------------------------------


def test_item_knn_matches_definition(monkeypatch):
    monkeypatch.setattr(continuation, "N_NEIGHBORS", 5)
    task, _ = task_about(made_up())
    of = [{at for at, songs in enumerate(task.train) if song in songs} for song in range(60)]
    plays = Counter(song for songs in task.train for song in songs)

    def cosine(a, b):
        return len(of[a] & of[b]) / np.sqrt(len(of[a]) * len(of[b])) if a != b else 0.0

    score = ways(task)[ITEM_KNN]()
    for at, begun in enumerate(task.begun[:5]):
        wanted = np.zeros(60)
        for a in begun:
            near = [cosine(a, b) for b in range(60)]
            kept = sorted(near)[-5]
            wanted += [value if value >= kept else 0.0 for value in near]
        ties = np.array([plays[song] for song in range(60)]) / (1 + max(plays.values()))
        np.testing.assert_allclose(score(at, begun), wanted + 1e-6 * ties, rtol=1e-12)


def test_popularity_counts_playlists_and_ranks_artist_songs():
    artists = np.array([0, 0, 1, 1, -1, -1])
    walk = PlaylistModel(build_edges(6)).fit
    by = ways(ContinuationTask(6, [[0, 2, 3], [2, 3, 3, 4], [3, 5]], [[0, 4]], walk, artists))
    assert recommend(by[POPULARITY]()(0, [0, 4]), []).tolist() == [3, 2, 0, 4, 5, 1]
    # song 1 is by the artist of song 0; the artists of songs 4 and 5 are unknown, which is not a match
    assert recommend(by[ARTIST]()(0, [0, 4]), [0, 4]).tolist() == [1, 3, 2, 5]
    assert SOUND not in by


def test_sound_way_uses_nearest_given_song():
    rng = np.random.default_rng(1)
    task, _ = task_about(made_up(), vectors=rng.standard_normal((60, 4)).astype(np.float32))
    begun = task.begun[0]
    apart = [min(np.sum((task.vectors[song] - task.vectors[own]) ** 2) for own in begun) for song in range(60)]
    np.testing.assert_allclose(ways(task)[SOUND]()(0, begun), -np.array(apart), rtol=1e-5, atol=1e-6)


def test_walk_score_is_mean_transition_probability():
    task, _ = task_about(made_up())
    rng = np.random.default_rng(2)
    labels = [[f"tag {tag}" for tag in range(6) if rng.random() < 0.4] for _ in range(60)]
    graph = build_edges(60, tags=labels, song_weight=rng.random(60) + 0.5)
    walk = PlaylistModel(graph).fit(task.train)
    begun = task.begun[0]
    others = np.setdiff1d(np.arange(60), begun)
    brute = np.mean([walk.transition_probabilities(song) for song in begun], axis=0)
    np.testing.assert_allclose(continuation.score_by_walk(walk)(0, begun)[others], brute[others], rtol=1e-12)


def test_every_way_except_popularity_finds_group_songs():
    task, taken = task_about(made_up())
    found = measure(task, taken, ways(task))
    precision = {name: scores["r_precision"].mean() for name, scores in found.items()}
    assert len(precision) == 7
    # four of the group's remaining sixteen: chance is a quarter within the group, a fourteenth without it
    assert all(value > 0.15 for name, value in precision.items() if name != POPULARITY), precision
    assert precision[POPULARITY] < 0.15


# --- lists of a library ----------------------------------------------------------------------------


def mixed_lists(library, n_lists, seed=0):
    """Make playlists of seven songs in random order."""
    ids = [song.id for song in library.songs()]
    rng = np.random.default_rng(seed)
    return [(f"list {n}", None, rng.permutation(ids)[:7].tolist()) for n in range(n_lists)]


@pytest.mark.long
def test_library_playlists_are_evaluated_by_every_way(tiny_library):
    tiny_library.add_playlists(mixed_lists(tiny_library, 20), source="test")
    said = []
    found = continue_lists(tiny_library, "playlists", lambda *told: said.append(told))
    assert (found.n_lists, found.n_judged, found.n_parts, found.n_songs) == (20, 20, 5, 12)
    assert set(found.scores) == {*found.leads, WALK}
    assert [scores["ndcg"][0] for scores in found.scores.values()] == sorted(
        (scores["ndcg"][0] for scores in found.scores.values()), reverse=True
    )
    for scores in found.scores.values():
        assert list(scores) == list(MEASURES)
        assert all(low <= mean <= high for mean, low, high in scores.values())
    assert said[-1][0].startswith("part 5: continuing lists")
    assert Continued(**asdict(found)) == found


def test_evaluation_can_be_canceled(tiny_library):
    tiny_library.add_playlists(mixed_lists(tiny_library, 20), source="test")

    def stop(message, *_):
        if "continuing" in message:
            raise Canceled

    with pytest.raises(Canceled):
        continue_lists(tiny_library, "playlists", stop)


def test_generated_and_short_playlists_are_not_evaluated(tiny_library):
    ids = [song.id for song in tiny_library.songs()]
    tiny_library.add_playlists(mixed_lists(tiny_library, 9), source="test")
    tiny_library.add_playlists([("short", None, ids[:5])], source="test")
    tiny_library.add_playlists([("drawn", None, ids, {"seed": 1})], source=OWN_PLAYLISTS)
    snapshot = take_snapshot(tiny_library)
    assert n_long_lists(snapshot) == {"playlists": 9, "sittings": 0}
    with pytest.raises(ModelError, match="9 playlists with at least 6 songs"):
        continue_lists(tiny_library, "playlists")


def test_walk_is_independent_of_evaluated_playlists(taught_folder, tmp_path):
    """Groups by company come from the training lists, so the walk is the same without the others."""
    chances = []
    for name in ("all", "fewer"):
        shutil.copytree(taught_folder, tmp_path / name)
        with Library.open(tmp_path / name) as library:
            lists = mixed_lists(library, 80)
            library.add_playlists(lists if name == "all" else lists[:60], source="test")
            snapshot = take_snapshot(library)
            train = lists_of(snapshot, "playlists")[:60]
            task = task_of(snapshot, "playlists", train, [train[0]])
            walk = task.fit_walk(task.train)
            assert any(edge.startswith("company") for edge in walk.hypergraph.names)
            chances.append(walk.transition_probabilities(3))
    np.testing.assert_array_equal(*chances)


def ended(**ndcg):
    """Build a result with these means and leads."""
    order = sorted(ndcg, key=lambda way: -ndcg[way][0])
    scores = {way: {"ndcg": (ndcg[way][0], 0.0, 1.0)} for way in order}
    return Continued("playlists", 20, 20, 5, 12, scores, {w: ndcg[w][1] for w in order if w != WALK})


@pytest.mark.parametrize(
    ("rival", "lead", "words"),
    [
        (0.2, (0.1, 0.05, 0.15), "The walk has the best NDCG, ahead of other by 0.100 (95% interval 0.050 to 0.150)"),
        (
            0.4,
            (-0.1, -0.15, -0.05),
            "The method with the best NDCG is other; the walk is behind by 0.100 (95% interval 0.050 to 0.150)",
        ),
        (0.35, (-0.05, -0.15, 0.05), "NDCG between the walk and other: -0.050 (95% interval -0.150 to +0.050)"),
    ],
)
def test_summary_names_best_way(rival, lead, words):
    assert words in ended(walk=(0.3, None), other=(rival, lead)).summary
