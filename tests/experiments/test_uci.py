"""The UCI sets of the experiments, and the error of nearest neighbors that they report."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.neighbors import KNeighborsClassifier

from experiments.support.uci import SETS, knn_errors, load_isolet, load_set
from tests.shared import SHARED

FOLDER = SHARED / "uci"
needs_uci = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="no UCI sets: set MUSICSIM_SHARED_DATA to the folder of public data sets"
)


@needs_uci
@pytest.mark.parametrize(
    ("name", "d", "counts"),
    [
        ("Balance", 4, [49, 288, 288]),
        ("Ionosphere", 34, [126, 225]),
        ("WDBC", 30, [357, 212]),
        ("Wine", 13, [59, 71, 48]),
    ],
)
def test_data_sets_have_published_sizes(name, d, counts):
    X, y = load_set(FOLDER, name)
    assert X.shape == (sum(counts), d)
    assert np.bincount(y).tolist() == counts
    assert np.isfinite(X).all()


@needs_uci
@pytest.mark.parametrize(("name", "load"), [("WDBC", load_breast_cancer), ("Wine", load_wine)])
def test_data_sets_match_scikit_learn(name, load):
    X, y = load_set(FOLDER, name)
    truth, labels = load(return_X_y=True)
    # WDBC's file has six decimals, scikit-learn's copy seven in six places
    np.testing.assert_allclose(X, truth, rtol=0, atol=5.1e-7)
    # B, M are 0, 1 here and 1, 0 there
    assert np.array_equal(y, 1 - labels if name == "WDBC" else labels)


@needs_uci
def test_isolet_parts_share_no_row():
    X, y, X_test, y_test = load_isolet(FOLDER)
    assert X.shape == (1560, 617)
    assert X_test.shape == (1559, 617)
    assert set(y) == set(y_test) == set(range(1, 27))
    assert not {row.tobytes() for row in X} & {row.tobytes() for row in X_test}
    # the figure that came with the data, 18.6 % for 3 neighbors, is of votes as scikit-learn counts them
    assert 1 - KNeighborsClassifier(3).fit(X, y).score(X_test, y_test) == pytest.approx(0.186, abs=5e-4)


def test_class_column_is_separated_from_features(tmp_path):
    (tmp_path / SETS["Ionosphere"][0]).write_text("1,2,g\n3,4,b\n")
    X, y = load_set(tmp_path, "Ionosphere")
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [1, 0]


def test_errors_match_scikit_learn_without_ties(rng):
    y, y_test = rng.integers(2, size=80), rng.integers(2, size=60)
    X, X_test = rng.normal(size=(80, 3)) + y[:, None], rng.normal(size=(60, 3)) + y_test[:, None]
    ks = (1, 3, 5, 9)  # odd, two classes: no ties
    truth = [1 - KNeighborsClassifier(k).fit(X, y).score(X_test, y_test) for k in ks]
    np.testing.assert_allclose(knn_errors(X, y, X_test, y_test, ks), truth, atol=1e-12)


def test_tied_vote_goes_to_nearest_row():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    y = np.array([2, 0, 0, 2])
    origin = np.zeros((1, 1))
    # 2 is nearest; then one vote each; then two against one; then two each
    assert knn_errors(X, y, origin, np.array([2]), (1, 2, 3, 4)).tolist() == [0, 0, 1, 0]
