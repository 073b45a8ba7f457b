"""The playlist experiment: what models learn from, what they are judged by, and what its tables and claims say."""

import gzip
import lzma
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.libraries import generated_library
from experiments import playlists
from experiments.support.playlist_models import (
    APP,
    BIGRAM,
    BOTH,
    JOINED,
    KNOWN,
    LME,
    TAGS,
    TAGS_JOINED,
    THESIS,
    THESIS_JOINED,
    WEIGHTED,
    Dialect,
    Judge,
    Result,
    Shares,
    demo_graph,
    edge_sets,
    measure_collection,
    measure_dialects,
)
from experiments.support.playlist_rivals import Popularity
from experiments.support.playlists import (
    LOADERS,
    Collection,
    demo_lists,
    load_aotm,
    load_spotify,
    load_yes,
    song_weights,
    split_lists,
    usable,
)
from musicsim.library import Library
from musicsim.playlist import PlaylistModel, build_edges
from tests.shared import needs_data

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

needs_playlists = needs_data("yes")

N_SONGS = 40


def some_lists(rng, n_lists=80, n_songs=N_SONGS):
    """Walks within one of two halves of the songs, and now and then across."""
    found = []
    for number in range(n_lists):
        half = number % 2 * (n_songs // 2)
        songs = half + rng.integers(0, n_songs // 2, size=int(rng.integers(3, 9)))
        songs[rng.random(len(songs)) < 0.1] = rng.integers(n_songs)
        found.append(songs.tolist())
    return usable(found)


def tiny(rng, name="tiny", tags=True):
    lists = some_lists(rng)
    known = {"tags": [["low" if song < 20 else "high", f"of {song % 3}"] for song in range(N_SONGS)]}
    return Collection(name, N_SONGS, lists, [None] * len(lists), known if tags else {})


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with (gzip.open if path.suffix == ".gz" else lzma.open)(path, "wt") as file:
        file.write(text)


# --- splits -------------------------------------------------------------------------------------------------------


def test_split_holds_out_quarter_of_each_category():
    categories = ["a"] * 40 + ["b"] * 21 + [None] * 8
    train, test = split_lists(categories, 0, 7)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(69))
    judged = [categories[row] for row in test]
    assert {name: judged.count(name) for name in ("a", "b", None)} == {"a": 10, "b": 5, None: 2}


def test_splits_depend_on_number_and_seed_only():
    categories = [None] * 100
    tests = [tuple(split_lists(categories, *by)[1]) for by in ((0, 0), (1, 0), (0, 1), (0, 0))]
    assert len(set(tests)) == 3
    assert tests[0] == tests[3]


def test_playlists_without_transitions_are_excluded():
    assert usable([[1], [], [2, 2], [3, 3, 4, 4, 3], [5, 6]]) == [[3, 4, 3], [5, 6]]


# --- nothing of the test lists is learned from --------------------------------------------------------------------


@pytest.mark.parametrize("tags", [True, False])
def test_probabilities_do_not_depend_on_test_playlists(rng, tags):
    about = tiny(rng, tags=tags)
    _, test = split_lists(about.categories, 0, 3)
    kept, *others = test.tolist()
    lists = [list(playlist) for playlist in about.playlists]
    for row in others:
        lists[row] = [0, 39, 0, 39, 1, 38]  # would change company, neighbors and plays
    plain, _, _ = measure_collection(about, 0, 3)
    moved, _, _ = measure_collection(replace(about, playlists=lists), 0, 3)
    assert [r.role for r in plain] == [r.role for r in moved]
    assert {BOTH, WEIGHTED} < {r.role for r in plain}
    for ours, theirs in zip(plain, moved, strict=True):
        place = list(ours.rows).index(kept)
        assert ours.log_p[place] == theirs.log_p[place], ours.role
        assert ours.n_edges == theirs.n_edges


def test_walk_depends_on_training_playlists(rng):
    """Show that training playlists reach the model, which the test above assumes."""
    about = tiny(rng)
    train, _ = split_lists(about.categories, 0, 3)
    lists = [list(playlist) for playlist in about.playlists]
    for row in train[::2]:
        lists[row] = [*lists[row][::-1], 0, 39, 0, 39]
    plain, _, _ = measure_collection(about, 0, 3)
    moved, _, _ = measure_collection(replace(about, playlists=lists), 0, 3)
    for ours, theirs in zip(plain[1:], moved[1:], strict=True):  # shuffle learns nothing
        assert not np.allclose(ours.log_p, theirs.log_p), ours.role


def test_song_weights_add_half_play():
    np.testing.assert_array_equal(song_weights([[0, 1, 0], [3, 1]], 5), [2.5, 2.5, 0.5, 1.5, 0.5])


# --- what a result says -------------------------------------------------------------------------------------------


def test_log_probability_and_gain_match_thesis(rng):
    about = tiny(rng)
    judge = Judge(about, 0, *split_lists(about.categories, 0, 0))
    found = judge.result("r", "w", lambda: Popularity(N_SONGS), before_s=5.0)
    model = Popularity(N_SONGS).fit(judge.lists(judge.train))
    per_list, normalised, uniform = [], [], []
    for playlist in judge.lists(judge.test):
        steps = [np.log(model.transition_probabilities(a)[b]) for a, b in pairwise(playlist)]
        per_list.append(sum(steps))
        normalised.append((np.log(model.first_probabilities()[playlist[0]]) + sum(steps)) / len(playlist))
        uniform.append(-(np.log(N_SONGS) + len(steps) * np.log(N_SONGS - 1)) / len(playlist))
    np.testing.assert_allclose(found.log_p, per_list, rtol=1e-12)  # two orders of summing up
    np.testing.assert_array_equal(found.n_transitions, [len(p) - 1 for p in judge.lists(judge.test)])
    assert found.gain == pytest.approx(1 - np.mean(normalised) / np.mean(uniform), rel=1e-12)
    assert playlists.log_p(found) == pytest.approx(sum(per_list) / found.n_transitions.sum(), rel=1e-12)
    assert found.seconds >= 5.0
    assert found.n_edges is None


def test_all_models_use_same_test_playlists(rng):
    results, dialects, shares = measure_collection(tiny(rng), 0, 0)
    assert dialects == shares == []
    assert len({tuple(r.rows) for r in results}) == 1
    by = {r.role: r for r in results}
    assert by["uniform shuffle"].gain == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(by["uniform shuffle"].log_p, -np.log(39) * by[LME].n_transitions)
    assert by[KNOWN].model == "walk: tags"
    assert by[WEIGHTED].model == "walk: tags, company, neighbors; songs by plays"
    # two halves that hardly mix: tags tell them apart, and a popular song does not
    assert playlists.log_p(by[KNOWN]) > playlists.log_p(by["popularity"]) + 0.3
    assert by[JOINED].n_edges > by[KNOWN].n_edges


def test_unlabeled_collection_uses_cooccurrence_edges(rng):
    roles = [r.role for r in measure_collection(tiny(rng, tags=False), 0, 0)[0]]
    assert KNOWN not in roles
    assert JOINED not in roles
    assert {"company", "neighbors", BOTH, WEIGHTED} < set(roles)


# --- tables and claims --------------------------------------------------------------------------------------------


def result(role, log_p, split=0, collection="yes_small", rows=None, gain=0.1, n_edges=None):
    rows = np.arange(len(log_p)) if rows is None else np.array(rows)
    n = np.arange(1, len(log_p) + 1)
    return Result(collection, role, role, split, rows, n, n * np.array(log_p, float), gain, 1.0, n_edges)


def dialect(category, own, of_all, split=0, edges=THESIS_JOINED, **more):
    return Dialect(edges, split, category, 5, own, of_all, **more)


def test_lead_is_mean_over_transitions_of_all_splits():
    ours = [result("a", [-1.0, -2.0, -3.0]), result("a", [-1.0, -1.0, -4.0], split=1, rows=[2, 5, 7])]
    theirs = [result("b", [-2.0, -2.0, -5.0]), result("b", [-1.5, -3.0, -4.0], split=1, rows=[2, 5, 7])]
    mean, low, high = playlists.lead(ours, theirs, 0)
    assert mean == pytest.approx((1 * 1 + 2 * 0 + 3 * 2 + 1 * 0.5 + 2 * 2 + 3 * 0) / 12)
    assert low < mean < high
    assert playlists.lead(theirs, ours, 0)[0] == pytest.approx(-mean)


def test_bootstrap_resamples_whole_playlists():
    """The same lists twice over are no more evidence than once: the interval stays as wide."""
    once = [result("a", np.linspace(-3, 0, 30))], [result("b", [-2.0] * 30)]
    twice = tuple([*results, replace(results[0], split=1)] for results in once)
    np.testing.assert_allclose(playlists.lead(*once, 0), playlists.lead(*twice, 0), rtol=1e-12)


def test_row_has_means_and_spreads_over_splits():
    by = {
        ("yes_small", role): [
            result(role, [x, x], gain=x + 9, n_edges=e),
            result(role, [x - 1, x - 1], split=1, gain=x),
        ]
        for role, x, e in ((BIGRAM, -7.0, None), (LME, -6.0, None), (WEIGHTED, -5.0, 4))
    }
    rows = {row["model"]: row for row in playlists.model_rows(by, 0)}
    assert rows[WEIGHTED]["log P"] == -5.5
    assert rows[WEIGHTED]["log P sd"] == pytest.approx(np.sqrt(0.5))
    assert rows[WEIGHTED]["G"] == -0.5
    assert rows[WEIGHTED]["ahead of bigram"] == "+2.000 (+2.000 to +2.000)"
    assert rows[WEIGHTED]["ahead of LME"] == "+1.000 (+1.000 to +1.000)"
    assert rows[WEIGHTED]["n edges"] == 4
    assert rows[BIGRAM]["ahead of LME"] == "-1.000 (-1.000 to -1.000)"
    assert "ahead of bigram" not in rows[BIGRAM]
    single = {key: results[:1] for key, results in by.items()}
    assert all(row["log P sd"] is None for row in playlists.model_rows(single, 0))


def test_model_claims_follow_leads():
    levels = {BIGRAM: -7.0, LME: -6.0, KNOWN: -6.9, JOINED: -6.8, BOTH: -6.5, WEIGHTED: -6.3}
    by = {("yes_small", role): [result(role, [x, x])] for role, x in levels.items()}
    claims = {c.claim: c for c in playlists.model_claims(by, 0)}
    ahead = claims["yes_small: walk ahead of the bigram, nats"]
    assert ahead.value == pytest.approx(0.7)
    assert ahead.holds
    assert ahead.goal == 0.6
    behind = claims["yes_small: walk ahead of LME, nats"]
    assert behind.value == pytest.approx(-0.3)
    assert not behind.holds
    assert claims["yes_small: songs by plays ahead of songs alike, nats"].holds
    assert claims["yes_small: conjunctions of tags ahead of tags, nats"].holds
    absent = [c for c in claims.values() if not c.claim.startswith("yes_small")]
    assert absent
    assert not any(c.holds or c.value is not None for c in absent)


def test_tie_with_rival_is_not_ahead():
    by = {("yes_small", role): [result(role, [-6.0, -6.0])] for role in (LME, WEIGHTED)}
    claims = {c.claim: c for c in playlists.model_claims(by, 0)}
    assert not claims["yes_small: walk ahead of LME, nats"].holds


def test_dialects_are_counted_by_median_over_splits():
    found = [
        *(dialect("a", own, 0.2, split) for split, own in enumerate((0.1, 0.3, 0.3))),
        *(dialect("b", own, 0.2, split) for split, own in enumerate((0.9, 0.1, 0.1))),
        dialect("c", 0.2, 0.2),
    ]
    assert playlists.dialects_ahead(found) == (2, 3)
    claims = list(playlists.dialect_claims({THESIS_JOINED: found}))
    assert (claims[0].value, claims[0].holds) == (pytest.approx(2 / 3), True)
    assert (claims[1].value, claims[1].holds) == (None, False)  # the app's were not measured
    half = [dialect("a", 0.1, 0.2), dialect("b", 0.3, 0.2)]
    assert not next(playlists.dialect_claims({THESIS_JOINED: half})).holds  # half is not most


def test_walk_must_beat_stationary_model_in_every_category():
    good = [dialect("a", 0.3, 0.2, stationary=0.1), dialect("b", 0.2, 0.2, stationary=-0.1)]
    *_, claim = playlists.dialect_claims({THESIS_JOINED: good})
    assert (claim.value, claim.holds) == (pytest.approx(0.2), True)
    bad = [*good, dialect("c", 0.1, 0.1, stationary=0.15)]
    *_, claim = playlists.dialect_claims({THESIS_JOINED: bad})
    assert (claim.value, claim.holds) == (pytest.approx(-0.05), False)


def test_category_and_edge_rows():
    ours = [dialect("a", 0.3, 0.2, leaning=0.4, stationary=0.1), dialect("a", 0.5, 0.2, 1, leaning=0.4, stationary=0.3)]
    app = [dialect("a", 0.6, 0.5, edges=APP)]
    (row,) = playlists.dialect_rows({THESIS_JOINED: ours, APP: app})
    assert row["G, dialect"] == pytest.approx(0.4)
    assert row["G, stationary"] == pytest.approx(0.2)
    assert row["G, dialect leaning, app"] == 0.6
    by_edges = {row["edges"]: row for row in playlists.edge_rows({THESIS_JOINED: ours, APP: app})}
    assert by_edges[THESIS_JOINED]["dialects at least level"] == "1 of 1"
    assert by_edges[THESIS_JOINED]["thesis dialects at least level"] == "23 of 25"
    assert by_edges[APP]["thesis dialects at least level"] is None


def test_shares_average_splits_with_absent_kinds_as_zero():
    shares = [
        Shares(THESIS_JOINED, 0, None, {"tag": 0.8, "uniform": 0.2}),
        Shares(THESIS_JOINED, 0, "a", {"tag": 0.5, "era": 0.5}),
        Shares(THESIS_JOINED, 1, "a", {"tag": 0.7}),
        Shares(THESIS_JOINED, 0, "b", {"tag": 0.3}),
        Shares(APP, 0, None, {"company": 0.9}),
        Shares(APP, 0, "a", {"company": 0.7}),
    ]
    rows = {(row["weights of"], row["on"]): row for row in playlists.share_rows(shares)}
    assert rows["walk of all lists", THESIS_JOINED]["tag"] == 0.8
    assert rows["mean of dialects", THESIS_JOINED]["tag"] == pytest.approx(0.5)
    assert rows["a", THESIS_JOINED]["era"] == pytest.approx(0.25)
    assert rows["mean of dialects in the thesis", "AotM-2011"]["tag"] == 0.64
    assert rows["mean of dialects", APP] == {"weights of": "mean of dialects", "on": APP, "company": 0.7}


# --- sets of edges ------------------------------------------------------------------------------------------------


def test_edge_sets_match_thesis():
    clusters = {"2": np.arange(12) % 2, "3": np.arange(12) % 3}
    graph = build_edges(
        12,
        clusters=clusters,
        tags=[["x"] * (i < 6) + ["y"] * (i % 4 < 3) for i in range(12)],
        artists=[f"a{i % 4}" for i in range(12)],
        conjunctions=True,
        max_overlap=1.0,
    )
    sets = edge_sets(graph)
    assert set(sets[TAGS].names) == {"tag:x", "tag:y", "uniform:all"}
    assert set(sets[TAGS_JOINED].names) == {"tag:x", "tag:y", "tag:x & tag:y", "uniform:all"}
    assert set(sets[THESIS].names) == {
        "tag:x", "tag:y", "cluster-2:0", "cluster-2:1", "cluster-3:0", "cluster-3:1", "cluster-3:2", "uniform:all",
    }  # fmt: skip
    assert set(sets[THESIS_JOINED].names) == {name for name in graph.names if "artist" not in name}
    assert sets[APP] is graph
    for edges in sets.values():
        for name in edges.names:
            ours, whole = edges.names.index(name), graph.names.index(name)
            np.testing.assert_array_equal(edges.members(ours), graph.members(whole))


# --- collections --------------------------------------------------------------------------------------------------


def test_yes_loads_playlists_and_tags(shared):
    folder = shared / "yes/yes_small"
    write(folder / "train.txt.xz", "10 11 12 \n3 2 1 \n0 1 2 0 \n1 \n2 2 1 \n")
    write(folder / "tag_hash.txt.xz", "0, rock\n1, hip, hop\n")
    write(folder / "tags.txt.xz", "0 1\n#\n1\n")
    about = load_yes("yes_small")
    assert (about.name, about.n_songs) == ("yes_small", 3)
    assert about.playlists == [[0, 1, 2, 0], [2, 1]]
    assert about.known["tags"] == [["rock", "hip, hop"], [], ["hip, hop"]]


def test_spotify_distinguishes_same_title_by_artist(shared):
    lines = ["song_name,artist_name,album_names,playlist", "S,A,X,p", "T,A,X,p", "S,B,X,p", "S,A,Y,q", "T,A,X,q"]
    write(shared / "spotify_msd/RA_19k.csv.xz", "\n".join(lines))
    about = load_spotify()
    assert about.n_songs == 3
    artists, albums = (about.known[key] for key in ("artists", "albums"))
    assert sorted(artists) == ["A", "A", "B"]
    assert {artists[song] for song in about.playlists[1]} == {"A"}
    assert about.playlists[0][0] == about.playlists[1][0]
    assert sorted(set(albums)) == ["A, X", "B, X"]  # an album of the same name by another is another


def test_aotm_joins_pairs_into_playlists(shared):
    write(shared / "aotm/aotm-bigrams.csv.gz", "a,b\nb,c\nd,e\ne,e\ne,a\nf,f\n")
    about = load_aotm()
    assert about.n_songs == 6
    assert about.playlists == [[0, 1, 2], [3, 4, 0]]
    assert about.known == {}


@needs_playlists
@pytest.mark.parametrize(
    ("name", "n_songs"), [("yes_small", 3168), ("yes_big", 9775), ("spotify", 14006), ("aotm", 26752)]
)
def test_collections_have_expected_contents(name, n_songs):
    about = LOADERS[name]()
    assert about.n_songs == n_songs
    songs = np.concatenate([np.array(playlist) for playlist in about.playlists])
    assert songs.min() >= 0
    assert songs.max() < n_songs
    assert min(map(len, about.playlists)) >= 2
    assert all(a != b for playlist in about.playlists for a, b in pairwise(playlist))
    assert all(len(labels) == n_songs for labels in about.known.values())
    if name == "aotm":
        assert sum(len(playlist) - 1 for playlist in about.playlists) == 66_250


# --- the library --------------------------------------------------------------------------------------------------


def listening_library(folder, lists, categories):
    with generated_library(folder, N_SONGS, n_artists=10, n_listeners=30, n_codewords=64) as library:
        ids = [song.id for song in library.songs()]
        library.add_playlists(
            [
                (f"list {i}", category, [ids[song] for song in songs])
                for i, (songs, category) in enumerate(zip(lists, categories, strict=True))
            ],
            "test",
        )
    return folder


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """A library with two categories of lists, each in its half of the songs."""
    lists = some_lists(np.random.default_rng(0), 120)
    categories = ["even" if i % 2 == 0 else "odd" for i in range(len(lists))]
    return listening_library(tmp_path_factory.mktemp("heard") / "library", lists, categories)


def test_demo_graph_ignores_test_playlists(heard, tmp_path):
    with Library.open(heard) as library:
        about = demo_lists(library)
    train, test = split_lists(about.categories, 0, 0)
    lists = [list(playlist) for playlist in about.playlists]
    for row in test:
        lists[row] = [0, 39, 0, 39, 1, 38]
    other = listening_library(tmp_path / "other", lists, about.categories)
    with Library.open(other) as library:
        assert demo_lists(library).playlists == lists
    judged = Judge(about, 0, train, test)
    a, b = (demo_graph(folder, judged.lists(train)) for folder in (heard, other))
    assert any(name.startswith("company") for name in a.names)
    assert a.names == b.names
    assert (a.incidence != b.incidence).nnz == 0
    c = demo_graph(heard, judged.lists(test) * 4)  # other lists, other company: it does come from what is handed in
    assert a.names != c.names or (a.incidence != c.incidence).nnz > 0


def test_dialect_uses_playlists_of_its_category_only(heard):
    with Library.open(heard) as library:
        about = demo_lists(library)
    judge = Judge(about, 0, *split_lists(about.categories, 0, 0))
    graph = demo_graph(heard, judge.lists(judge.train))
    dialects, shares = measure_dialects(judge, TAGS, edge_sets(graph)[TAGS])
    assert {d.category for d in dialects} == {"even", "odd"}
    alone = PlaylistModel(edge_sets(graph)[TAGS])
    for found in dialects:
        rows = {
            side: [p for p, c in zip(judge.lists(part), judge.categories(part), strict=True) if c == found.category]
            for side, part in (("train", judge.train), ("test", judge.test))
        }
        assert found.of_dialect == pytest.approx(alone.fit(rows["train"]).relative_gain(rows["test"]), abs=1e-12)
        assert found.n_judged == len(rows["test"])
        weight = next(s.shares for s in shares if s.category == found.category)
        alone.fit(rows["train"])
        assert weight == pytest.approx(alone.family_shares())
