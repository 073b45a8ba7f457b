"""Files of learning to rank: read as written, errors by file and line, the real ones by their published sizes."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from experiments.support.letor_files import load_letor, load_lightgbm
from tests.shared import SHARED

FOLDER = SHARED / "letor"
needs_letor = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no LETOR: set MUSICSIM_SHARED_DATA to the folder of public data sets"
)
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
        ("# nothing\n", "rows.txt has no rows"),
    ],
)
def test_error_names_file_and_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        load_letor(written(tmp_path, text))


@pytest.mark.filterwarnings("error")
def test_rejects_values_beyond_single_precision(tmp_path):
    with pytest.raises(ValueError, match="feature 1 is not finite in single precision"):
        load_letor(written(tmp_path, "1 qid:1 1:-1e39\n"))


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


def test_rejects_feature_beyond_training_columns(tmp_path):
    with pytest.raises(ValueError, match="line 1: feature 4 is out of range; they count from 1 to 3"):
        load_letor(written(tmp_path, "1 qid:1 4:2\n"), n_features=3)


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
