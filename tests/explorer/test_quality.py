"""Tests of the quality of a library: brute force, the search of the app, and planted hubs and confusions."""

from types import SimpleNamespace

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.evaluation import hubness
from musicsim.explorer.evaluation import quality
from musicsim.explorer.evaluation.quality import evaluate, load_held_out, measure_lists, measure_scores
from musicsim.explorer.models.artifacts import save_report
from musicsim.explorer.search.query import find_similar
from musicsim.library.db.columns import Labels, SongColumns
from musicsim.search import ExactIndex, MutualProximity
from tests.learning import RANKED, score_found


def labels(values):
    names = sorted({value for value in values if value is not None})
    codes = [-1 if value is None else names.index(value) for value in values]
    return Labels(np.array(codes, dtype=np.int32), names)


def made(X, genres, artists):
    """Build a snapshot of songs without a library. Ids are rows plus 100."""
    songs = [SimpleNamespace(genre=genre, group=artist) for genre, artist in zip(genres, artists, strict=True)]
    X, n = np.asarray(X, dtype=np.float32), len(songs)
    artist, proximity = labels(artists), MutualProximity().fit(X)
    return SimpleNamespace(
        n_indexed=n,
        row_ids=100 + np.arange(n),
        columns=SongColumns(artist=artist, genre=labels(genres), group=artist),
        songs_at=lambda rows=range(n): [songs[row] for row in rows],
        X=X,
        index=ExactIndex().fit(X),
        index_of=lambda some: ExactIndex().fit(some),
        proximity=proximity,
        adjust_distances=lambda x, d, rows: proximity.rescore(d, rows, np.ravel(proximity.moments(x[None]))),
        record=None,
        library=SimpleNamespace(pool=None, settings={"hub_reduction": True}),
    )


@pytest.fixture
def mixed(rng):
    """Return 120 songs of three genres, four per artist, some without a genre."""
    genres = [("jazz", "rock", "folk")[i // 4 % 3] for i in range(120)]
    centres = dict(zip(("jazz", "rock", "folk"), rng.standard_normal((3, 12)), strict=True))
    X = np.array([centres[g] for g in genres]) + rng.standard_normal((120, 12))
    genres[5] = genres[77] = None
    return made(X, genres, [f"artist {i // 4}" for i in range(120)])


def brute_lists(of, *, reduced, filtered):
    """Return the ten nearest songs of each, from the full matrix of distances."""
    X = of.X.astype(np.float64)
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    if reduced:
        moments, rows = zip(of.proximity.mean_, of.proximity.std_, strict=True), np.arange(len(D))
        D = np.stack([of.proximity.rescore(d, rows, own) for d, own in zip(D, moments, strict=True)])
    np.fill_diagonal(D, np.inf)
    if filtered:
        groups = np.array([song.group for song in of.songs_at()])
        D[groups[:, None] == groups] = np.inf
    return np.argsort(D, axis=1, kind="stable")[:, :10]


@pytest.mark.parametrize("reduced", [False, True])
def test_neighbor_lists_match_brute_force(mixed, reduced):
    both = measure_lists(mixed)
    lists = both.reduced if reduced else both.plain
    near = brute_lists(mixed, reduced=reduced, filtered=False)
    counts = np.bincount(near.ravel(), minlength=120)
    assert {h.song_id - 100: h.n_lists for h in lists.hubs} == {i: c for i, c in enumerate(counts) if c}
    asking = {i: {mixed.songs_at([q])[0].group for q in np.flatnonzero((near == i).any(axis=1))} for i in range(120)}
    assert all(h.n_artists == len(asking[h.song_id - 100]) for h in lists.hubs)
    assert [h.n_lists for h in lists.hubs] == sorted((c for c in counts if c), reverse=True)
    assert lists.orphans == [100 + i for i in np.flatnonzero(counts == 0)]
    assert lists.coverage == pytest.approx((counts > 0).mean())
    assert lists.hubness == pytest.approx(hubness(near))


@pytest.mark.parametrize("reduced", [False, True])
def test_genre_confusion_matches_brute_force(mixed, reduced):
    both = measure_lists(mixed)
    lists = both.reduced if reduced else both.plain
    near = brute_lists(mixed, reduced=reduced, filtered=True)
    genres = np.array([song.genre or "" for song in mixed.songs_at()])
    confusion = lists.confusion
    assert set(confusion.genres) == {"jazz", "rock", "folk"}
    assert confusion.columns == confusion.genres, "songs without a genre are no confusion"
    for i, genre in enumerate(confusion.genres):
        found = genres[near[genres == genre]]
        expected = [(found == other).sum() / (found != "").sum() for other in confusion.columns]
        np.testing.assert_allclose(confusion.shares[i], expected)
        assert lists.same_genre_of[genre] == pytest.approx((found == genre).mean())
        assert confusion.n_songs[i] == np.count_nonzero(genres == genre)


def test_reduced_neighbor_lists_match_search(snapshot):
    lists = measure_lists(snapshot)
    for hub_reduction, one in ((False, lists.plain), (True, lists.reduced)):
        counts = {}
        for song in snapshot.songs_at():
            for hit in find_similar(snapshot, song.id, 10, max_per_artist=None, hub_reduction=hub_reduction):
                counts[hit.song.id] = counts.get(hit.song.id, 0) + 1
        assert {h.song_id: h.n_lists for h in one.hubs} == counts


def test_scores_match_individual_queries(mixed):
    scores = measure_scores(mixed, "genre")
    groups = [song.group for song in mixed.songs_at()]
    genres = [song.genre for song in mixed.songs_at()]
    pairs = []
    for q in range(120):
        others = [i for i in range(120) if groups[i] != groups[q]]
        same = [i for i in others if genres[q] and genres[i] == genres[q]]
        pairs.append((same, [i for i in others if i not in same]))
    rows = np.arange(120)
    expected = score_found(mixed, rows, rows, pairs)
    assert (scores.n_queries, scores.n_skipped, scores.n_left_out) == (118, 2, 0)
    for name, figure in scores.figures.items():
        assert figure.mean == pytest.approx(expected[name])
        assert figure.low < figure.mean < figure.high
    weights = [g.n_queries for g in scores.by_genre]
    assert sum(weights) == 118
    assert np.average([g.map for g in scores.by_genre], weights=weights) == pytest.approx(expected["map"])
    assert np.average([g.precision for g in scores.by_genre], weights=weights) == pytest.approx(expected["precision"])


def test_sample_is_seeded_and_near_full_scores(mixed, monkeypatch):
    whole = measure_scores(mixed, "genre")
    monkeypatch.setattr(quality, "_MAX_QUERIES", 60)
    one, again = (measure_scores(mixed, "genre") for _ in range(2))
    assert one == again
    assert (one.n_queries, one.n_skipped, one.n_left_out) == (60, 2, 58)
    # half of the queries: four standard errors of a mean of 60 values with deviation 0.2
    assert one.figures["auc"].mean == pytest.approx(whole.figures["auc"].mean, abs=0.1)
    monkeypatch.setattr(quality, "_MAX_SONGS", 50)
    lists = measure_lists(mixed)
    assert (lists.n_songs, lists.n_compared) == (120, 50)
    assert sum(h.n_lists for h in lists.plain.hubs) == 500
    assert len(lists.plain.hubs) + len(lists.plain.orphans) == 50


def test_finds_planted_hub_and_orphan(rng):
    X = rng.standard_normal((200, 60))
    X[7] *= 0.05  # nearer to all songs than these are to each other
    X[9] *= 3.0
    both = measure_lists(made(X, ["all"] * 200, [f"artist {i}" for i in range(200)]))
    assert (both.plain.hubs[0].song_id, both.plain.hubs[0].n_lists) == (107, 199)
    assert both.plain.hubs[0].n_artists == 199
    assert 109 in both.plain.orphans
    assert both.plain.hubness > 5
    assert both.reduced.hubness < both.plain.hubness / 2
    assert both.reduced.hubs[0].n_lists < 199


def test_finds_planted_confusion(rng):
    centres = {"jazz": 0.0, "blues": 0.3, "noise": 50.0, "rare": 50.0}
    genres = ["jazz"] * 30 + ["blues"] * 20 + ["noise"] * 30 + ["rare"] * 3
    X = np.array([[centres[g]] * 8 for g in genres]) + 0.1 * rng.standard_normal((83, 8))
    X[30:50] = X[:20] + 0.01 * rng.standard_normal((20, 8))
    confusion = measure_lists(made(X, genres, [f"artist {i}" for i in range(83)])).plain.confusion
    assert confusion.genres == ["jazz", "noise", "blues"]
    assert confusion.columns == ["jazz", "noise", "blues", "other genres"], "three songs say little"
    np.testing.assert_allclose(confusion.shares.sum(axis=1), 1.0)
    first = confusion.pairs(1)[0]
    assert (first.genre, first.other) == ("blues", "jazz")
    assert f"{first.share:.0%} of the songs nearest to blues are jazz" == first.words
    assert all("rare" not in (pair.genre, pair.other) for pair in confusion.pairs(100))
    few = confusion.largest(2)
    assert (few.genres, few.columns) == (["jazz", "noise"], ["jazz", "noise", "other genres"])
    np.testing.assert_allclose(few.shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(few.shares[:, :2], confusion.shares[:2, :2])


def test_rare_genres_are_excluded_from_same_genre_share(rng):
    genres = ["jazz"] * 30 + ["rare"] * 4
    X = np.array([[50.0 if g == "rare" else 0.0] * 8 for g in genres]) + rng.standard_normal((34, 8))
    lists = measure_lists(made(X, genres, [f"artist {i}" for i in range(34)])).plain
    assert lists.same_genre == 1.0
    assert lists.same_genre_of == {"jazz": 1.0}


def test_single_artist_gives_no_queries(rng):
    alone = made(rng.standard_normal((12, 4)), ["jazz"] * 12, ["one"] * 12)
    scores = measure_scores(alone, "genre")
    assert (scores.n_queries, scores.n_skipped) == (0, 12)
    assert np.isnan(scores.figures["auc"].mean)
    lists = measure_lists(alone).plain
    assert np.isnan(lists.confusion.shares).all()
    assert lists.same_genre_of == {}
    unnamed = measure_lists(made(rng.standard_normal((12, 4)), [None] * 12, [f"artist {i}" for i in range(12)]))
    assert unnamed.plain.confusion.genres == []
    assert measure_lists(made(np.zeros((1, 4)), ["jazz"], ["one"])) is None


def test_identical_songs_fill_neighbor_lists(rng):
    X = rng.standard_normal((30, 5))
    X[20] = X[3]
    lists = measure_lists(made(X, ["jazz"] * 30, [f"artist {i}" for i in range(30)])).plain
    assert sum(h.n_lists for h in lists.hubs) == 300


def test_progress_reaches_total(mixed):
    told = []
    measure_lists(mixed, progress=lambda *said: told.append(said))
    assert told[-1][1:] == (120, 120)


def test_evaluation_handles_missing_data(snapshot):
    evaluated = evaluate(snapshot, "genre")
    assert evaluated.model == snapshot.record.name
    assert evaluated.held_out is None
    # each genre of the tiny library is one artist, so the artist filter leaves nothing to find
    assert evaluated.scores.n_queries == 0
    with pytest.raises(ModelError, match="plays"):
        measure_scores(snapshot, "plays")


def test_held_out_scores_match_report(snapshot):
    lead = {"before": 0.5, "after": 0.7, "mean": 0.2, "low": 0.1, "high": 0.3}
    report = RANKED | {
        "leads": {"auc": lead},
        "split": {part: {"songs": 4, "artists": 1} for part in ("train", "validation", "test")},
        "settings": RANKED["settings"] | {"supervision": "tags"},
    }
    save_report(snapshot.library.models.path(snapshot.record.id), report)
    found = load_held_out(snapshot.library, snapshot.record)
    assert (found.kind, found.n_songs, found.n_artists, found.leads["auc"].after) == ("tags", 4, 1, 0.7)
