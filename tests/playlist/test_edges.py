"""Tests of edges from known data about songs, against sets written by hand or by loops."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.playlist import build_edges, describe_edge
from musicsim.playlist.edges import edge_families


def as_sets(graph):
    return {name: set(graph.members(e).tolist()) for e, name in enumerate(graph.names)}


def test_clusters_and_listener_clusters():
    graph = build_edges(
        4, clusters={"2": np.array([0, 1, 0, 1]), "3": np.array([2, 2, -1, 2])}, listener_clusters={"8": [5, 5, -1, -1]}
    )
    assert as_sets(graph) == {
        "cluster-2:0": {0, 2},
        "cluster-2:1": {1, 3},
        "cluster-3:2": {0, 1, 3},
        "listeners-8:5": {0, 1},
        "uniform:all": {0, 1, 2, 3},
    }


def test_artists_that_are_missing_join_no_edge():
    artists = ["Nora Vale", None, "", "  ", float("nan"), "Nora Vale", None]
    assert as_sets(build_edges(7, artists=artists)) == {"artist:Nora Vale": {0, 5}, "uniform:all": set(range(7))}


def test_only_the_first_tags_of_a_song_are_used():
    tags = [["a", "b", "c"], ["b", "b", "a"], ["c", "a"]]
    assert as_sets(build_edges(3, tags=tags, max_tags=2, uniform=False)) == {"tag:a": {0, 1, 2}, "tag:b": {0, 1}}


def test_a_year_lies_in_two_half_overlapping_decades():
    graph = build_edges(5, years=[1994, 1994, 1999, None, 0], min_size=2)
    assert as_sets(graph) == {
        "year:1994": {0, 1},
        "decade:1990-1999": {0, 1, 2},
        "decade:1985-1994": {0, 1},
        "uniform:all": set(range(5)),
    }


def test_the_thesis_example_1977_is_in_1970_and_1975():
    names = build_edges(2, years=[1977, 1977]).names
    assert {"year:1977", "decade:1970-1979", "decade:1975-1984"} <= set(names)


def test_familiarity_is_cut_into_thirds():
    sets = as_sets(build_edges(9, familiarity=[9, 1, 5, 8, 2, 4, 7, 3, 6]))
    assert sets["familiarity:low"] == {1, 4, 7}
    assert sets["familiarity:medium"] == {2, 5, 8}
    assert sets["familiarity:high"] == {0, 3, 6}


def test_equal_plays_share_a_third_and_unknown_ones_have_none():
    sets = as_sets(build_edges(7, familiarity=[0, 0, 0, 0, 5, 5, np.nan]))
    assert sets["familiarity:low"] == {0, 1, 2, 3}
    assert not any(6 in songs for name, songs in sets.items() if name.startswith("familiarity"))


def test_plays_that_are_all_equal_say_nothing():
    assert build_edges(5, familiarity=np.zeros(5)).names == ["uniform:all"]


def test_topics_make_one_set_of_edges_a_depth():
    topics = [[1, 2, 3, 4, 5, 6], [1], [2, 1], []]
    sets = as_sets(build_edges(4, topics=topics))
    assert sets["topic-1:1"] == {0, 1}
    assert sets["topic-3:1"] == {0, 1, 2}
    assert sets["topic-3:2"] == sets["topic-5:2"] == {0, 2}
    assert not any(name.endswith(":6") for name in sets)


def test_one_topic_a_song_makes_no_deeper_copies():
    names = build_edges(3, topics=[[7], [7], [7]]).names
    assert names == ["topic-1:7", "uniform:all"]


def test_company_albums_and_playlists():
    graph = build_edges(
        5,
        cooccurrence_clusters={"2": [1, 1, 0, 0, -1], "2b": [0, 1, 0, 1, 1]},
        albums=["Tides", None, "Tides", "", "Tides"],
        playlists={"Sunday: morning & after": [4, 0, 0, 4, 1], "empty": [], "one": [2, 2]},
    )
    assert as_sets(graph) == {
        "company-2:1": {0, 1},
        "company-2:0": {2, 3},
        "company-2b:0": {0, 2},
        "company-2b:1": {1, 3, 4},
        "album:Tides": {0, 2, 4},
        "playlist:Sunday: morning & after": {0, 1, 4},
        "uniform:all": set(range(5)),
    }
    assert graph.n_dropped == 1  # the playlist of one song; an empty one does not make an edge


def test_topics_carry_their_words():
    topics = [[7, 3], [7], [3, 7]]
    words = {7: "love  heart", 3: ""}
    names = build_edges(3, topics=topics, topic_words=words, uniform=False).names
    assert set(names) == {"topic-1:7 love heart", "topic-3:7 love heart", "topic-3:3"}


def test_edges_of_clusters_come_in_the_order_of_songs():
    graph = build_edges(6, clusters={"9": [8, 2, -1, 2, 8, -1]})
    assert graph.names == ["cluster-9:8", "cluster-9:2", "uniform:all"]


def test_small_edges_are_left_out_and_counted():
    graph = build_edges(6, tags=[["a"], ["a"], ["a"], ["b"], ["b"], ["c"]], min_size=3)
    assert set(graph.names) == {"tag:a", "uniform:all"}
    assert graph.n_dropped == 2


@pytest.mark.parametrize("n_songs", [0, 1])
@pytest.mark.parametrize("conjunctions", [False, True])
def test_collections_of_fewer_than_two_songs(n_songs, conjunctions):
    graph = build_edges(
        n_songs, tags=[["a"]] * n_songs, years=[1990] * n_songs, familiarity=[1] * n_songs,
        topics=[[1]] * n_songs, artists=["x"] * n_songs, clusters={"4": np.zeros(n_songs, int)},
        conjunctions=conjunctions,
    )  # fmt: skip
    assert (graph.n_songs, graph.n_edges) == (n_songs, 0)


def test_without_the_uniform_edge_a_song_may_be_left_over():
    with pytest.raises(ValueError, match="1 of 3 songs"):
        build_edges(3, tags=[["a"], ["a"], []], uniform=False)


def test_song_weights_reach_the_hypergraph():
    assert build_edges(3, song_weight=[1, 2, 3]).mass.tolist() == [6]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tags": [["a"]]}, "tags has 1 entries for n_songs=3"),
        ({"artists": ["x"] * 4}, "artists has 4 entries"),
        ({"years": [1990]}, "years has 1 entries"),
        ({"familiarity": [1.0]}, "familiarity has 1 entries"),
        ({"topics": []}, "topics has 0 entries"),
        ({"clusters": {"4": [0, 1]}}, r"clusters\['4'\] has 2 entries"),
        ({"clusters": {"4": [0.5, 1.0, 2.0]}}, "must contain integers"),
        ({"listener_clusters": {"a b": [0, 0, 0]}}, "listener_clusters: the label 'a b'"),
        ({"cooccurrence_clusters": {"4": [0.5, 1, 2]}}, r"cooccurrence_clusters\['4'\] must contain integers"),
        ({"albums": ["x"]}, "albums has 1 entries"),
        ({"playlists": {"a": [0, 3]}}, r"playlists\['a'\] must contain song rows"),
        ({"playlists": {"a": [-1]}}, r"playlists\['a'\] must contain song rows"),
        ({"playlists": {"a": [0.5]}}, r"playlists\['a'\] must contain song rows"),
        ({"playlists": {" ": [0, 1]}}, "a blank name"),
        ({"topics": [[1]] * 3, "topic_words": {1: "you & me"}}, r"topic_words\[1\]"),
        ({"topics": [[1]] * 3, "topic_words": {1: "you:me"}}, r"topic_words\[1\]"),
        ({"min_size": 1}, "min_size=1"),
        ({"max_tags": 0}, "max_tags=0"),
        ({"max_overlap": 0.0}, "max_overlap=0.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        build_edges(3, **arguments)


def kind_of(name):
    kind = name.split(":")[0].split("-")[0]
    return "era" if kind in ("year", "decade") else kind


def brute_conjunctions(base, min_size, max_overlap):
    found = {}
    for (a, songs_a), (b, songs_b) in itertools.combinations(base.items(), 2):
        both = songs_a & songs_b
        if (
            (kind_of(a) != kind_of(b) or kind_of(a) != "company")
            and len(both) >= min_size
            and len(both) <= max_overlap * min(len(songs_a), len(songs_b))
        ):
            found[f"{a} & {b}"] = both
    return found


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), min_size=st.integers(2, 4), max_overlap=st.sampled_from([0.3, 0.5, 0.75, 1.0]))
def test_conjunctions_equal_brute_force(seed, min_size, max_overlap):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    arguments = {
        "clusters": {"3": rng.integers(-1, 3, n), "5": rng.integers(0, 5, n)},
        "cooccurrence_clusters": {"2": rng.integers(-1, 2, n), "2b": rng.integers(0, 2, n)},
        "artists": [rng.choice(["Ann", "Simon & Garfunkel", ""]) for _ in range(n)],
        "playlists": {"mine": rng.permutation(n)[: n // 2].tolist()},
        "tags": [list(rng.permutation(["a", "b", "c", "d"])[: rng.integers(0, 4)]) for _ in range(n)],
        "years": [int(year) if year > 1990 else None for year in rng.integers(1988, 1998, n)],
        "min_size": min_size,
    }
    base = as_sets(build_edges(n, **arguments))
    built = as_sets(build_edges(n, **arguments, conjunctions=True, max_overlap=max_overlap))
    uniform = base.pop("uniform:all", None)
    expected = base | brute_conjunctions(base, min_size, max_overlap)
    if uniform is not None:
        expected["uniform:all"] = uniform
    assert built == expected


def test_20000_songs_with_conjunctions_take_seconds():
    # Loops over the pairs of songs would need minutes. Measured: 0.5 s; the limit is a hundred times that.
    rng, n = np.random.default_rng(0), 20_000
    start = time.process_time()
    graph = build_edges(
        n,
        clusters={k: rng.integers(0, int(k), n) for k in ("16", "64", "256")},
        tags=rng.integers(0, 500, (n, 10)).astype(str).tolist(),
        years=rng.integers(1960, 2020, n).tolist(),
        conjunctions=True,
        min_size=n // 256,
    )
    assert time.process_time() - start < 50
    assert graph.n_edges > 1000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cluster-16:12", "both with similar sound (cluster 12 of 16)"),
        ("listeners-64:3", "both played by the same listeners (group 3 of 64)"),
        ("company-256:12", "both in playlists with the same songs (group 12 of 256)"),
        ("company-256b:12", "both in playlists with the same songs (group 12b of 256)"),
        ("cluster-mood:3", "both with similar sound (cluster 3 of mood)"),
        ("cluster:3", "both with similar sound (cluster 3)"),
        ("album:Tides", "both on the album “Tides”"),
        ("playlist:Sunday", "both in the playlist “Sunday”"),
        ("topic-1:7 love heart night", "both about love, heart, night"),
        ("topic-3:7 love heart night", "both with love, heart, night among the first 3 topics"),
        ("topic-1:love songs", "both about topic love songs"),
        ("artist:Nora Vale", "both by Nora Vale"),
        ("artist:Simon & Garfunkel", "both by Simon & Garfunkel"),
        ("tag:calm", "both tagged calm"),
        ("tag:a:b", "both tagged a:b"),
        ("year:1994", "both from 1994"),
        ("decade:1990-1999", "both from 1990-1999"),
        ("familiarity:low", "both in the least played third"),
        ("topic-1:7", "both about topic 7"),
        ("topic-3:7", "both with topic 7 among the first 3 topics"),
        ("uniform:all", "random jump"),
        ("tag:calm & decade:1990-1999", "both tagged calm and from 1990-1999"),
        ("mood:sunny", "both in mood sunny"),
    ],
)
def test_edges_in_words(name, words):
    assert describe_edge(name) == words


def test_clusters_may_be_called_by_name():
    named = {("cluster-16", "2"): "fast, bright"}.get
    called = lambda family, value: named((family, value), "")  # noqa: E731
    assert describe_edge("cluster-16:2 & tag:calm", called=called) == (
        "both with similar sound (fast, bright) and tagged calm"
    )
    assert describe_edge("cluster-16:3", called=called) == "both with similar sound (cluster 3 of 16)"
    assert describe_edge("listeners-64:3 & tag:calm", called=lambda *_: None) == (
        "both played by the same listeners and tagged calm"
    )


def test_words_for_one_song():
    assert (
        describe_edge("tag:calm & cluster-16:2", both=False) == "tagged calm and with similar sound (cluster 2 of 16)"
    )


def test_edges_by_kind_of_knowledge():
    names = {
        "cluster-16:12": ("audio",),
        "listeners-64:3": ("listeners",),
        "company-256b:12": ("company",),
        "year:1994": ("era",),
        "decade:1990-1999": ("era",),
        "familiarity:low": ("familiarity",),
        "topic-3:7 love heart": ("lyrics",),
        "tag:calm": ("tag",),
        "artist:Simon & Garfunkel": ("artist",),
        "album:Tides": ("album",),
        "playlist:Sunday": ("playlist",),
        "uniform:all": ("uniform",),
        "mood:sunny": ("mood",),
        "artist:Simon & Garfunkel & year:1966": ("artist", "era"),
        "cluster-16:1 & topic-5:7 love heart": ("audio", "lyrics"),
    }
    assert edge_families(names) == list(names.values())


def test_a_conjunction_draws_on_its_parts_and_two_groups_by_company_make_none():
    rng = np.random.default_rng(0)
    graph = build_edges(
        200,
        clusters={"2": rng.integers(0, 2, 200), "3": rng.integers(0, 3, 200)},
        cooccurrence_clusters={"2": rng.integers(0, 2, 200), "2b": rng.integers(0, 2, 200)},
        years=rng.integers(1990, 2000, 200).tolist(),
        conjunctions=True,
        max_overlap=1,
    )
    families = edge_families(graph.names)
    joint = [kinds for name, kinds in zip(graph.names, families, strict=True) if " & " in name]
    assert set(joint) == {("audio",), ("era",), ("audio", "company"), ("audio", "era"), ("company", "era")}
    assert all(len(kinds) == 1 for name, kinds in zip(graph.names, families, strict=True) if " & " not in name)


def test_each_song_has_an_edge_of_its_company_which_joins_no_conjunction():
    near = np.array([[0, 1, 2], [1, 0, -1], [2, -1, -1], [-1, -1, -1]])
    graph = build_edges(
        4, tags=[["a"], ["a"], [], []], cooccurrence_neighbors=near, song_names=list("ABCD"), conjunctions=True,
        min_size=2, max_overlap=1,
    )  # fmt: skip
    sets = as_sets(graph)
    assert sets == {"tag:a": {0, 1}, "near-3:0 A": {0, 1, 2}, "near-3:1 B": {0, 1}, "uniform:all": {0, 1, 2, 3}}
    assert edge_families(["near-3:0 A"]) == [("company",)]
    assert describe_edge("near-3:0 A") == "both in playlists with “A”"
    assert describe_edge("near-3:0 A", called=lambda *_: "“A” by Ann") == "both in playlists with “A” by Ann"
    assert describe_edge("near-3:7") == "both in playlists with song 7"
    with pytest.raises(
        ValueError, match=r"cooccurrence_neighbors must contain song rows \(int\) and have shape \(4, k\)"
    ):
        build_edges(4, cooccurrence_neighbors=near[:3])
    with pytest.raises(ValueError, match="song_names has 1 entries"):
        build_edges(4, cooccurrence_neighbors=near, song_names=["A"])


def test_a_value_that_reads_like_a_conjunction_stays_one_value():
    graph = build_edges(3, artists=["Ann & tag:calm"] * 2 + ["Simon & Garfunkel"], min_size=2)
    assert edge_families(graph.names) == [("artist",), ("uniform",)]
    assert describe_edge(graph.names[0]) == "both by Ann and tag:calm"


def test_conjunctions_may_have_a_least_size_of_their_own():
    arguments = {"tags": [["a", "b"]] * 2 + [["a"]] * 4 + [["b"]] * 4, "conjunctions": True}
    assert "tag:a & tag:b" in build_edges(10, **arguments).names
    assert "tag:a & tag:b" not in build_edges(10, **arguments, min_joint_size=3).names
