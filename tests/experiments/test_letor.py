"""Learning to rank: files as written, what rankers may see, the printed algorithms, and local metrics."""

import bz2
import gzip
import itertools
import lzma

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from experiments import letor
from experiments.local_metrics import COLUMNS, measured_gains, synthetic
from experiments.support.letor import (
    BEYOND,
    DOCUMENT,
    EITHER,
    Fold,
    best_of,
    euclid,
    halves,
    judged,
    ndcg,
    pair_differences,
    ranknet,
    scores_of_known,
    within_queries,
)
from experiments.support.letor_boosting import gbrt, lambdarank
from experiments.support.letor_files import RankingRows, load_letor, load_lightgbm
from experiments.support.lgmml_printed import closeness, local_metrics
from musicsim.evaluation.graded import score_groups
from tests.shared import SHARED, needs_data

# --- letor -----------------------------------------------------------------------------------------------


TINY = letor.Protocol(
    seeds=2, lgmml={"n_metrics": 5, "n_epochs": 2}, lgmml_grid=[{"n_queries": 5, "max_features": 0.5}], regs=(0.1,),
    printed={"n_metrics": 4, "n_epochs": 2}, printed_grid=[{"reg": 1e-3, "phi": 1.0, "margin": 0.1}],
    Cs=(1.0,), mlr_queries=5, mlr_cuts=3, ridges=(0.1,), trees=[{"num_leaves": 4, "min_child_samples": 5}],
)  # fmt: skip


def made_up(seed, n_queries=25, d=4):
    """Relevance rises with the first column, and with nothing else."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, 9, n_queries)
    X = rng.normal(size=(group.sum(), d)).astype(np.float32)
    y = (X[:, 0] > 0).astype(float) + (X[:, 0] > 1)
    return RankingRows(X, y, group, (), ())


def fold():
    return Fold("made up", made_up(0), made_up(1), made_up(2))


def test_all_folds_are_read_if_they_are_there(shared):
    lines = [f"{number % 3} qid:{number} 1:0.{number}" for number in range(1, 7)]
    for folder in ("MQ2008_Fold1", *(f"MQ2008/Fold{number}" for number in range(1, 5))):
        for part in ("train", "vali", "test"):
            file = shared / "letor" / folder / f"{part}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(lines[: int(folder[-1])]) + "\n")
    assert next(letor.folds(0)).name == letor.MQ2008, "the first of one"
    for part in ("train", "vali", "test"):
        file = shared / "letor/MQ2008/Fold5" / f"{part}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(lines[:5]) + "\n")
    five = list(itertools.islice(letor.folds(0), 5))
    assert [each.name for each in five] == [f"MQ2008, fold {number}" for number in range(1, 6)]
    assert [len(each.test.y) for each in five] == [1, 2, 3, 4, 5]


def test_features_are_normalized_within_query():
    rows = made_up(0)
    X = within_queries(RankingRows(np.c_[rows.X, np.ones(len(rows.X))], rows.y, rows.group, (), ()))
    for part in np.split(X, np.cumsum(rows.group)[:-1]):
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(part.std(axis=0), [1, 1, 1, 1, 0], atol=1e-9)


def test_pairs_differ_in_relevance_within_query():
    rows = made_up(0)
    expected = [
        a - b
        for part, y in zip(
            np.split(rows.X, np.cumsum(rows.group)[:-1]), np.split(rows.y, np.cumsum(rows.group)[:-1]), strict=True
        )
        for a, la in zip(part, y, strict=True)
        for b, lb in zip(part, y, strict=True)
        if la > lb
    ]
    np.testing.assert_array_equal(pair_differences(rows.X, rows.y, rows.group), expected)


def test_label_0_documents_are_irrelevant():
    rows = RankingRows(np.zeros((5, 1), np.float32), np.array([1.0, 0, 2, 1, 0]), np.array([3, 2]), (), ())
    relevance = judged(rows)
    assert [relevance.relevant(i).tolist() for i in range(5)] == [[2], [], [0], [], []]
    assert [relevance.irrelevant(i).tolist() for i in range(5)] == [[1], [], [1], [4], []]


def test_halves_share_queries_but_no_documents():
    rows = made_up(0)
    rows = RankingRows(np.arange(len(rows.y), dtype=np.float32)[:, None], rows.y, rows.group, (), ())
    first, second = halves(rows, 0)
    assert len(first.group) == len(second.group) == len(rows.group)
    np.testing.assert_array_equal(first.group + second.group, rows.group)
    query = np.repeat(np.arange(len(rows.group)), rows.group)
    for part in (first, second):
        places = part.X[:, 0].astype(int)
        np.testing.assert_array_equal(query[places], np.repeat(np.arange(len(part.group)), part.group))
        np.testing.assert_array_equal(rows.y[places], part.y)
    np.testing.assert_array_equal(np.sort(np.r_[first.X[:, 0], second.X[:, 0]]), np.arange(len(rows.y)))


def test_validation_picks_first_of_equal_settings():
    data = fold()

    def by(column, sign):
        return lambda: lambda rows: sign * rows.X[:, column].astype(float)

    fits = [("noise", by(1, 1)), ("good", by(0, 1)), ("as good", by(0, 1)), ("bad", by(0, -1))]
    best = best_of(iter(fits), data)
    assert (best.chosen, best.place) == ("good", 1)
    assert best.choosing_s >= best.seconds >= 0


def test_rankers_ignore_test_queries():
    data = fold()
    other = Fold(data.name, data.train, data.validation, made_up(9))
    for make in (lambda f: euclid(f, EITHER, 0), lambda f: ranknet(f, (0.1,))):
        np.testing.assert_array_equal(make(data).score(data.test), make(other).score(data.test))


def test_anchor_can_lie_beyond_relevant_documents():
    data = fold()
    train = data.train
    chosen = euclid(data, BEYOND, 0).score(train)
    by_document = euclid(data, DOCUMENT, 0).score(train)
    assert ndcg(chosen, train) > ndcg(by_document, train)
    # far beyond the mean distances fall along the way there: the one column that counts decides
    assert np.corrcoef(chosen, within_queries(train)[:, 0])[0, 1] > 0.9


def test_known_queries_use_both_weight_types():
    learned, ranked = halves(made_up(0), 0)
    found = scores_of_known(learned, ranked, 0, 2, (10,), n_metrics=4, n_epochs=2)
    assert set(found) == {"shared phi", "phi of the query"}
    assert all(scores["ndcg@10"].shape == (25,) for scores in found.values())


def test_metrics_and_anchors_match_algorithms_1_and_2():
    rows = made_up(0)
    X, y = rows.X.astype(float), rows.y
    starts = np.concatenate([[0], np.cumsum(rows.group)])
    reg = 0.1
    local = local_metrics(X, y, rows.group, 6, reg, np.random.default_rng(0))
    for M, anchor in zip(local.metrics, local.anchors, strict=True):
        place = int(np.flatnonzero((anchor == X).all(axis=1))[0])
        q = int(np.searchsorted(starts, place, side="right")) - 1
        here = np.arange(starts[q], starts[q + 1])
        ups, downs = X[here][y[here] > 0], X[here][y[here] == 0]
        S, D = reg * np.eye(4), reg * np.eye(4)
        for p in ups:
            S += sum(np.outer(p - other, p - other) for other in ups)
            D += sum(np.outer(p - other, p - other) for other in downs)
        np.testing.assert_allclose(M @ S @ M, D, atol=1e-8)  # (8)
        size = len(here)
        ndcgs = [
            score_groups(-np.array([(x - p) @ M @ (x - p) for x in X[here]]), y[here], [size], (size,)) for p in ups
        ]
        best = max(float(found[f"ndcg@{size}"][0]) for found in ndcgs)
        chosen = ups.tolist().index(anchor.tolist())
        assert float(ndcgs[chosen][f"ndcg@{size}"][0]) == best
        t = np.sqrt([(x - anchor) @ M @ (x - anchor) for x in X])
        r = local.anchors.tolist().index(anchor.tolist())
        np.testing.assert_allclose(closeness(local, X)[:, r], t * np.exp(-t), atol=1e-6)


def test_trees_rank_by_informative_column():
    pytest.importorskip("lightgbm")
    data = fold()
    trees = lambdarank(data, TINY.trees, 0)
    assert trees.chosen == "num_leaves 4, min_child_samples 5"
    assert ndcg(trees.score(data.test), data.test) > 0.9


def test_selects_queries_from_file():
    rows = made_up(0)
    some = letor.queries_of(rows, np.array([1, 4]))
    starts = np.concatenate([[0], np.cumsum(rows.group)])
    np.testing.assert_array_equal(some.X, np.concatenate([rows.X[starts[q] : starts[q + 1]] for q in (1, 4)]))
    np.testing.assert_array_equal(some.group, rows.group[[1, 4]])


# --- letor files -----------------------------------------------------------------------------------------


FOLDER = SHARED / "letor"
needs_letor = needs_data("letor")
TEXT = """# a header
2 qid:7 1:0.5 3:-1e-3 # docid = a # b

0 qid:7 2:4
1 qid:a 3:1   #docid = c
"""


def written(folder, text, name="rows.txt"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_letor_file(tmp_path):
    rows = load_letor(written(tmp_path, TEXT))
    X, y, group = rows
    np.testing.assert_allclose(X, [[0.5, 0, -1e-3], [0, 4, 0], [0, 0, 1]], rtol=1e-6)
    assert X.dtype == np.float32
    assert y.tolist() == [2, 0, 1]
    assert group.tolist() == [2, 1]
    assert rows.qid == ("7", "a")
    assert rows.comments == ("docid = a # b", "", "docid = c")


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)])
def test_reads_compressed_file(tmp_path, suffix, opened):
    with opened(tmp_path / f"rows.txt{suffix}", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    assert load_letor(str(tmp_path / f"rows.txt{suffix}")).group.tolist() == [2, 1]


def test_reads_file_written_by_scikit_learn(tmp_path, rng):
    X = np.round(rng.normal(size=(30, 6)), 3) * (rng.random((30, 6)) < 0.5)
    X[0] = 1.0
    y, qid = rng.integers(0, 5, 30), np.repeat([3, 1, 9], 10)
    dump_svmlight_file(X, y, str(tmp_path / "rows.txt"), zero_based=False, query_id=qid)
    rows = load_letor(tmp_path / "rows.txt")
    truth, labels, queries = load_svmlight_file(str(tmp_path / "rows.txt"), query_id=True, zero_based=False)
    np.testing.assert_allclose(rows.X, truth.toarray(), rtol=1e-6)
    np.testing.assert_array_equal(rows.y, labels)
    np.testing.assert_array_equal(np.repeat([int(q) for q in rows.qid], rows.group), queries)


def test_test_file_can_use_training_columns(tmp_path):
    path = written(tmp_path, "1 qid:1 2:5\n")
    assert load_letor(path, n_features=4).X.tolist() == [[0, 5, 0, 0]]
    assert load_letor(written(tmp_path, "1 qid:1 0:5 2:1\n"), zero_based=True).X.tolist() == [[5, 0, 1]]
    assert load_letor(written(tmp_path, "1 qid:1\n"), n_features=2).X.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:2\n1 1:2\n", "rows.txt, line 2: the second word should be qid:NUMBER"),
        ("1 qid: 1:2\n", "line 1: the second word"),
        ("1 qid:1 1:2\n0 qid:2 1:1\n1 qid:1 1:1\n", "line 3: query 1 comes back"),
        ("x qid:1 1:2\n", "line 1: 'x' should be the label"),
        ("-1 qid:1 1:2\n", "line 1: '-1' should be the label"),
        ("nan qid:1 1:2\n", "line 1: 'nan' should be the label"),
        ("# c\n1 qid:1 1:2 2:x\n", "line 2: '2:x' should be index:value"),
        ("1 qid:1 1:2 2\n", "line 1: '2' should be index:value"),
        ("1 qid:1 1:2 1:3\n", "line 1: a feature is named twice"),
        ("1 qid:1 0:2\n", "line 1: feature 0 is out of range; they count from 1"),
        ("1 qid:1 1:inf\n", "line 1: feature 1 is not finite"),
        ("1 qid:1 2:1 4:1e39\n", "line 1: feature 4 is not finite in single precision"),
        ("1 qid:1 3000000000:1\n", "line 1: feature 3000000000 is out of range"),
        ("1 qid:1 1000001:1\n", "line 1: feature 1000001 .* from 1 to 1000000; give n_features for more"),
        ("1 qid:1 -9223372036854775809:1\n", "line 1: feature -9223372036854775809 is out of range"),
        ("1 qid:1 1:-1e39\n", "line 1: feature 1 is not finite in single precision"),
        ("# nothing\n", "rows.txt has no rows"),
        ("1 qid:1 4:2\n", "line 1: feature 4 is out of range; they count from 1 to 3"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_error_names_file_and_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load_letor(written(tmp_path, text), n_features=3 if "1 to 3" in message else None)


def test_tolerates_bom_and_foreign_comment_encoding(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"\xef\xbb\xbf1 qid:\xe9 1:2 # caf\xe9\n0 qid:\xe8 1:1\n")
    rows = load_letor(path)
    assert rows.y.tolist() == [1, 0]
    assert rows.group.tolist() == [1, 1]
    assert rows.comments == (r"caf\xe9", "")
    (tmp_path / "rows.txt.query").write_bytes(b"\xef\xbb\xbf2\n")
    path.write_bytes(b"\xef\xbb\xbf1 1:2\n0 1:1\n")
    assert load_lightgbm(path).group.tolist() == [2]


@pytest.mark.parametrize(("suffix", "module"), [(".gz", gzip), (".xz", lzma), (".bz2", bz2)])
def test_rejects_damaged_compressed_file(tmp_path, suffix, module):
    path = tmp_path / f"rows.txt{suffix}"
    packed = module.compress(b"1 qid:1 1:1\n" * 1000)
    for content in (packed[:-20], b"1 qid:1 1:1\n", packed[:10] + b"\xff" * 100):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"rows.txt{suffix}, after line \d+: the file is damaged, or no {suffix}"):
            load_letor(path)
    path.write_bytes(b"2\n")  # not packed
    with pytest.raises(ValueError, match=rf"rows.txt{suffix}, after line 0: the file is damaged"):
        load_lightgbm(written(tmp_path, "1 1:1\n"), path)
    with pytest.raises(FileNotFoundError):
        load_letor(tmp_path / f"none{suffix}")


@pytest.mark.parametrize("n_features", [-1, 0, 2.0, 2**31])
def test_rejects_invalid_n_features(tmp_path, n_features):
    with pytest.raises(ValueError, match=f"n_features={n_features} should be"):
        load_letor(written(tmp_path, "1 qid:1\n"), n_features=n_features)


def test_reads_lightgbm_file_pair(tmp_path):
    path = written(tmp_path, "1 1:2 # x\n0 2:1\n2 1:1\n", "rank.train")
    query = written(tmp_path, "2\n1\n", "rank.train.query")
    rows = load_lightgbm(path)
    assert rows.X.tolist() == [[2, 0], [0, 1], [1, 0]]
    assert rows.group.tolist() == [2, 1]
    assert rows.qid == ()
    assert load_lightgbm(path, query, zero_based=True).X.shape == (3, 3)
    with pytest.raises(ValueError, match=r"sizes sum to 5, but .*rank.train has 3 rows"):
        load_lightgbm(path, written(tmp_path, "2\n3\n", "wrong"))
    with pytest.raises(ValueError, match="wrong, line 2: 'x' should be the rows of a query"):
        load_lightgbm(path, written(tmp_path, "2\nx\n", "wrong"))


@needs_letor
def test_real_files_have_published_sizes():
    test = load_letor(FOLDER / "MQ2008_Fold1" / "test.txt.xz")
    assert test.X.shape == (2874, 46)
    assert len(test.group) == len(test.qid) == 156
    assert set(test.y) == {0, 1, 2}
    assert test.comments[0].startswith("docid = ")
    rows = load_lightgbm(FOLDER / "lightgbm_lambdarank" / "rank.test.xz", n_features=300)
    assert rows.X.shape == (768, 300)
    assert len(rows.group) == 50


# --- local metrics ---------------------------------------------------------------------------------------


def test_classes_have_distinct_covariances():
    X, y = synthetic(3, 3000, np.random.default_rng(0))
    assert X.shape == (3000, COLUMNS)
    assert np.bincount(y).tolist() == [1000] * 3
    covariances = [np.cov(X[y == k], rowvar=False) for k in range(3)]
    for one, other in ((0, 1), (1, 2)):
        apart = np.linalg.norm(covariances[one] - covariances[other])
        assert apart > 0.5 * np.linalg.norm(covariances[one])


def test_local_metrics_improve_on_distinct_class_shapes():
    found = measured_gains(10, (1.0,), 0)
    assert list(found) == [1, 10]
    assert found[10] > found[1] + 0.05


def test_regression_trees_find_informative_column():
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError) as error:  # its wheel needs the system's libgomp
        pytest.skip(f"lightgbm cannot be loaded: {error}")
    made = fold()
    grid = [{"num_leaves": 4, "min_child_samples": 5}]
    fitted = gbrt(made, grid, 0)
    assert np.corrcoef(fitted.score(made.test), made.test.X[:, 0])[0, 1] > 0.7
    assert np.array_equal(fitted.score(made.test), gbrt(made, grid, 0).score(made.test))
