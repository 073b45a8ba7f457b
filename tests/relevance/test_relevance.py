"""Tests of relevance against loops written from the definitions."""

import tracemalloc
from fractions import Fraction

import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from musicsim.relevance import Relevance, label_codes
from musicsim.relevance import relevance as module

labels = st.lists(st.sampled_from([0, 1, 2, -1, None]), min_size=1, max_size=9)
# few listeners, so that similarities tie; counts on both sides of the threshold
play_tables = hnp.arrays(
    np.int64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.sampled_from([0, 0, 9, 10, 30])
)


def sets(relevance):
    n_relevant = [len(relevance.relevant(i)) for i in range(len(relevance))]
    assert relevance.n_relevant().tolist() == n_relevant
    return [(relevance.relevant(i).tolist(), relevance.irrelevant(i).tolist()) for i in range(len(relevance))]


def relevant_sets(relevance):
    return [relevant for relevant, _ in sets(relevance)]


def most_similar(plays, k, candidates):
    """Compute equation 5.2 with sets and fractions, item by item."""
    listeners = [set(np.flatnonzero(column >= 10)) for column in plays.T]
    lists = []
    for i, own in enumerate(listeners):
        scored = [
            (-Fraction(len(own & listeners[j]), len(own | listeners[j])), j)
            for j in candidates
            if j != i and own & listeners[j]
        ]
        lists.append(sorted(j for _, j in sorted(scored)[:k]))
    return lists


@given(labels, st.data())
def test_labels_equal_a_loop_over_pairs(y, data):
    artists = data.draw(st.lists(st.sampled_from(["a", "b", None]), min_size=len(y), max_size=len(y)))
    known = [label not in (-1, None) for label in y]
    for artist_filter in (True, False):
        truth = []
        for i in range(len(y)):
            left = [
                j
                for j in range(len(y))
                if j != i and not (artist_filter and artists[i] is not None and artists[i] == artists[j])
            ]
            relevant = [j for j in left if known[i] and y[i] == y[j]]
            truth.append((relevant, [j for j in left if j not in relevant]))
        assert sets(Relevance.from_labels(y, groups=artists if artist_filter else None)) == truth


@pytest.mark.parametrize(
    "y",
    [
        ["x", None, "y", "x", "  "],
        [7, -1, 3, 7, np.nan],
        np.array([7.0, np.nan, 3.0, 7.0, -1.0]),
        np.array([7, -1, 3, 7, -1]),
        pd.Series(["x", None, "y", "x", ""]),
        pd.Series([7, pd.NA, 3, 7, -1], dtype="Int64"),
        [("a", 1), None, "y", ("a", 1), -1],
    ],
    ids=["texts", "numbers", "floats", "ints", "series", "nullable", "mixed"],
)
def test_unknown_labels_in_every_guise(y):
    relevance = Relevance.from_labels(y)
    assert relevant_sets(relevance) == [[3], [], [], [0], []]
    assert relevance.irrelevant(0).tolist() == [1, 2, 4]
    codes = label_codes(y)
    assert (codes >= 0).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize(
    "labels", [[100, -100, 100, -1], [2**63 + 5, 2**63, 2**63 + 5], [-(2**63), 2**63 - 1, -1], [7, 1_000_000, 7]]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64, np.float64, object])
def test_numbers_are_labels_in_each_type(labels, dtype):
    if np.dtype(dtype).kind in "iu" and not all(np.can_cast(np.min_scalar_type(n), dtype) for n in labels):
        return  # the numbers do not fit
    seen: dict[int, int] = {}
    expected = [-1 if label == -1 else seen.setdefault(label, len(seen)) for label in np.array(labels, dtype).tolist()]
    codes = label_codes(np.array(labels, dtype))
    assert len(set(zip(codes.tolist(), expected, strict=True))) == len(set(expected))
    assert [code < 0 for code in codes] == [code < 0 for code in expected]


def test_labels_take_memory_by_songs_not_by_pairs():
    y = np.arange(20_000) % 2
    label_codes(y)  # imports at the first call do not count
    tracemalloc.start()
    relevance = Relevance.from_labels(y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6  # a byte per pair would be 400 MB
    assert len(relevance.relevant(19_999)) == 9_999


def test_lists_among_the_songs_themselves():
    relevance = Relevance.from_lists([[2, 1, 2, 0], {2}, [], np.array([0], dtype=np.int32)])
    assert sets(relevance) == [([1, 2], [3]), ([2], [0, 3]), ([], [0, 1, 3]), ([0], [1, 2])]
    assert (len(relevance), relevance.n_items) == (4, 4)
    assert sets(Relevance.from_lists([[1], [0]], n=2)) == [([1], []), ([0], [])]


def test_lists_of_queries_from_outside_keep_every_row():
    assert sets(Relevance.from_lists([[0, 2], [1]], n=3)) == [([0, 2], [1]), ([1], [0, 2])]
    assert sets(Relevance.from_lists([[0], [0]], n=2, outside=True)) == [([0], [1]), ([0], [1])]


def test_rows_in_neither_list_are_left_out():
    relevance = Relevance.from_lists([[1], [2], []], irrelevant=[[3, 0, 2], [], [1]], n=4)
    assert sets(relevance) == [([1], [0, 2, 3]), ([2], []), ([], [1])]
    assert relevance.judgments([0, 1, 2]).tolist() == [[0, 1, 0, 0], [-1, -1, 1, -1], [-1, 0, -1, -1]]


def test_the_artist_filter_takes_from_both_sets():
    artists = ["a", "a", "b", None, None]
    lists = [[1, 2], [2], [0], [4], []]
    irrelevant = [[3], [0, 4], [1], [0], [3]]
    relevance = Relevance.from_lists(lists, irrelevant=irrelevant).exclude_own_group(artists)
    assert sets(relevance) == [([2], [3]), ([2], [4]), ([0], [1]), ([4], [0]), ([], [3])]


def test_the_artist_filter_needs_queries_from_the_database():
    with pytest.raises(ValueError, match="not in the database"):
        Relevance.from_lists([[0, 1], [2]], n=4).exclude_own_group([0, 0, 1, 1])


@given(play_tables, st.integers(1, 4), st.integers(0, 255))
def test_plays_equal_the_definition(plays, k, mask):
    n = plays.shape[1]
    truth = most_similar(plays, k, range(n))
    assert relevant_sets(Relevance.from_plays(sparse.csr_array(plays), k=k)) == truth
    candidates = [j for j in range(n) if mask >> j & 1]
    relevance = Relevance.from_plays(sparse.coo_matrix(plays), k=k, candidates=candidates)
    assert relevant_sets(relevance) == most_similar(plays, k, candidates)


@pytest.mark.parametrize("entries", [1, 500, 4_000])
def test_blocks_do_not_show(monkeypatch, rng, entries):
    plays = rng.poisson(0.4, size=(40, 120)) * rng.integers(5, 30, size=120)
    monkeypatch.setattr(module, "BLOCK_ENTRIES", entries)
    relevance = Relevance.from_plays(sparse.csc_matrix(plays), k=7)
    assert relevant_sets(relevance) == most_similar(plays, 7, range(120))


@given(play_tables, st.integers(1, 9))
def test_the_compiled_loop_equals_itself_in_python(plays, k):
    compiled = relevant_sets(Relevance.from_plays(sparse.csr_array(plays), k=k))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "count_shared", module.count_shared.py_func)
        assert relevant_sets(Relevance.from_plays(sparse.csr_array(plays), k=k)) == compiled


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_do_not_show(rng, n_threads):
    # in groups of equally similar items, which must go to the lower one for any thread
    plays = np.repeat(rng.integers(0, 2, size=(50, 30)) * 10, 4, axis=1)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(min(n_threads, numba.config.NUMBA_NUM_THREADS))
        found = relevant_sets(Relevance.from_plays(sparse.csr_array(plays), k=6))
    finally:
        numba.set_num_threads(before)
    assert found == most_similar(plays, 6, range(120))


@pytest.mark.parametrize("overlap", module.OVERLAPS)
@pytest.mark.parametrize("k", [1, 10, 400])
def test_plays_equal_a_dense_product(rng, k, overlap):
    popularity = 1 / np.arange(1, 301)
    plays = (rng.random((500, 300)) < popularity[rng.permutation(300)]) * rng.integers(1, 40, size=(500, 300))
    heard = (plays >= 10).astype(float)
    shared = heard.T @ heard
    listeners = heard.sum(axis=0)
    jaccard = shared / np.maximum(listeners[:, None] + listeners[None, :] - shared, 1)
    lift = shared / np.maximum(listeners[:, None] * listeners[None, :], 1)
    similarity = {"jaccard": jaccard, "lift": lift}[overlap]
    np.fill_diagonal(similarity, 0)
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    truth = [sorted(j for j in row if similarity[i, j] > 0) for i, row in enumerate(best)]
    assert relevant_sets(Relevance.from_plays(sparse.csc_array(plays), k=k, overlap=overlap)) == truth


def test_columns_of_narrow_types_are_plays(rng):
    users, items = rng.integers(30, size=400, dtype=np.int32), rng.integers(50, size=400, dtype=np.uint16)
    counts = rng.integers(1, 15, size=400).astype(np.float32)
    plays = np.zeros((30, 50))
    np.add.at(plays, (users, items), counts)
    columns = pd.DataFrame({"user": users, "item": items, "count": counts})
    assert relevant_sets(Relevance.from_plays(columns, n=50)) == most_similar(plays, 10, range(50))


def test_relevance_of_plays_is_asymmetric():
    # of the listeners of 0, a quarter play 1 and a half play 2; listeners of 1 or 2 play nothing else but 0
    plays = sparse.csr_array(np.array([[20, 20, 0], [20, 0, 20], [20, 0, 20], [20, 0, 0]]))
    assert relevant_sets(Relevance.from_plays(plays, k=1)) == [[2], [0], [0]]


def test_triples_of_named_users_are_added_up():
    triples = [("ann", 0, 6), ("ann", 2, 10), ("bob", 1, 50), ("ann", 0, 4), ("bob", 2, 9), ("bob", 3, 10)]
    relevance = Relevance.from_plays(triples, n=6)
    assert relevant_sets(relevance) == [[2], [3], [0], [1], [], []]
    numbered = np.array([[user == "bob", item, count] for user, item, count in triples], dtype=np.int64)
    assert relevant_sets(Relevance.from_plays(numbered)) == [[2], [3], [0], [1]]
    assert relevant_sets(Relevance.from_plays(triples, threshold=11)) == [[], [], [], []]
    assert len(Relevance.from_plays([])) == 0


def test_the_matrix_of_the_caller_is_not_changed():
    plays = sparse.coo_array(([5, 5, 10], ([0, 0, 0], [0, 0, 1])), shape=(1, 2)).tocsr(copy=True)
    before = plays.toarray()
    assert relevant_sets(Relevance.from_plays(plays)) == [[1], [0]]
    np.testing.assert_array_equal(plays.toarray(), before)


@given(play_tables, st.integers(1, 3), st.data())
def test_songs_of_relevant_artists_are_relevant(plays, k, data):
    n = plays.shape[1]
    artists = data.draw(st.lists(st.one_of(st.integers(0, n - 1), st.none()), min_size=1, max_size=10))
    similar = most_similar(plays, k, range(n))
    for artist_filter in (True, False):
        truth = []
        for i, own in enumerate(artists):
            left = [
                j
                for j, other in enumerate(artists)
                if j != i and not (artist_filter and own is not None and own == other)
            ]
            relevant = [j for j in left if own is not None and artists[j] in similar[own]]
            truth.append((relevant, [j for j in left if j not in relevant]))
        relevance = Relevance.from_plays(sparse.csr_matrix(plays), k=k, groups=artists, artist_filter=artist_filter)
        assert sets(relevance) == truth


def test_triples_of_artists_need_not_name_the_artist_of_every_song():
    triples = [(0, 0, 20), (0, 1, 20)]
    relevance = Relevance.from_plays(triples, groups=[0, 1, 1, 5, np.nan])
    assert relevant_sets(relevance) == [[1, 2], [0], [0], [], []]


@given(play_tables, st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_split_keeps_what_it_names(plays, k, random):
    n = plays.shape[1]
    queries = random.choices(range(n), k=random.randint(0, n + 1))
    database = random.sample(range(n), random.randint(0, n))
    artists = [random.choice("ab") for _ in range(n)]
    whole = Relevance.from_plays(sparse.csr_array(plays), k=k).exclude_own_group(artists)
    part = whole.restrict(queries, database)
    assert (len(part), part.n_items) == (len(queries), len(database))
    for i, q in enumerate(queries):
        assert {database[j] for j in part.relevant(i)} == set(whole.relevant(q)) & set(database)
        assert {database[j] for j in part.irrelevant(i)} == set(whole.irrelevant(q)) & set(database)
        assert (np.diff(part.relevant(i)) > 0).all()


def test_a_split_keeps_irrelevant_lists_and_labels():
    relevance = Relevance.from_lists([[1], [2], [0]], irrelevant=[[2], [], [1]])
    assert sets(relevance.restrict(queries=[2, 0], database=[2, 1, 0])) == [([2], [1]), ([1], [0])]
    by_label = Relevance.from_labels([5, 6, None, 5]).restrict([3, 2], [1, 0])
    queries, items = by_label.labels
    assert queries[0] == items[1] != items[0]
    assert queries[1] == -1


@given(labels, st.data())
def test_judgments_are_the_sets(y, data):
    relevance = Relevance.from_labels(y, groups=[i // 2 for i in range(len(y))])
    asked = data.draw(st.lists(st.integers(0, len(y) - 1), max_size=4))
    judged = relevance.judgments(asked)
    assert judged.shape == (len(asked), len(y))
    for i, row in zip(asked, judged, strict=True):
        assert np.flatnonzero(row == 1).tolist() == relevance.relevant(i).tolist()
        assert np.flatnonzero(row == 0).tolist() == relevance.irrelevant(i).tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Relevance.from_labels(np.zeros((3, 2))), r"y has shape \(3, 2\)"),
        (lambda: Relevance.from_labels([0, 1], groups=[0]), "groups has 1 entries for 2 songs"),
        (lambda: Relevance.from_lists([[0], [2]]), r"lists\[1\] has row 2, but the database has rows 0 to 1"),
        (lambda: Relevance.from_lists([[-1]], n=3), "has row -1"),
        (lambda: Relevance.from_lists([[0, 1, 3]], n=3), r"lists\[0\] has row 3, but the database has rows 0 to 2"),
        (lambda: Relevance.from_lists([0, 1]), r"lists\[0\] must be a list of row numbers"),
        (lambda: Relevance.from_lists([[0.5]], n=3), "must be a list of row numbers"),
        (lambda: Relevance.from_lists({0: [1], 1: [0]}), "lists is a dict; pass a list with one entry per row"),
        (lambda: Relevance.from_lists([[1], [0]], irrelevant={0: [], 1: []}), "irrelevant is a dict"),
        (lambda: Relevance.from_labels([0, [1, 2]]), r"y\[1\] is \[1, 2\].*Relevance.from_lists"),
        (lambda: Relevance.from_labels({0: "rock", 1: "folk"}), "y is a dict"),
        (lambda: Relevance.from_lists([[1], [1, 2]], 3, irrelevant=[[0], [2]]), "row 2 is both .* query 1"),
        (lambda: Relevance.from_lists([[1], [0]], irrelevant=[[0]]), "irrelevant has 1 lists, but lists has 2"),
        (lambda: Relevance.from_lists([[1]], 3, irrelevant=[[0], [2]]), "irrelevant has 2 lists, but lists has 1"),
        (lambda: Relevance.from_plays([(0, 0, 1)], k=0), "k=0"),
        (lambda: Relevance.from_plays([(0, 0, 1)], threshold=0), "threshold=0"),
        (lambda: Relevance.from_plays([(0, 0, 1)], overlap="cosine"), "overlap='cosine' must be one of jaccard, lift"),
        (lambda: Relevance.from_plays([(0, 0, -1)]), "not negative"),
        (lambda: Relevance.from_plays([(0, 0, np.nan)]), "finite"),
        (lambda: Relevance.from_plays([(0, "x", 1)]), "integers of at least 0"),
        (lambda: Relevance.from_plays([(None, 0, 1)]), "row 0 has no user"),
        (lambda: Relevance.from_plays([(0, 1)]), r"shape \(1, 2\)"),
        (lambda: Relevance.from_plays([(0, 4, 1)], n=3), "n=3 must be at least 5, because plays has item 4"),
        (lambda: Relevance.from_plays(sparse.eye_array(3), n=4), "n=4, but plays has 3"),
        (
            lambda: Relevance.from_plays(sparse.eye_array(3), groups=[0, 3]),
            "groups has artist 3, but plays has items 0 to 2",
        ),
        (lambda: Relevance.from_plays(sparse.eye_array(3), groups=["x"]), r"groups\[0\] is 'x'"),
        (lambda: Relevance.from_plays(sparse.eye_array(3), candidates=[3]), "candidates has row 3"),
        (lambda: Relevance.from_labels([0, 1]).restrict(database=[1, 1]), "database contains a song twice"),
        (lambda: Relevance.from_labels([0, 1]).restrict(queries=[2]), "queries has row 2"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("i", [-1, 2])
def test_a_query_out_of_range_is_refused(i):
    relevance = Relevance.from_labels([0, 0])
    for ask in (relevance.relevant, relevance.irrelevant):
        with pytest.raises(IndexError, match="the number of queries is 2"):
            ask(i)
