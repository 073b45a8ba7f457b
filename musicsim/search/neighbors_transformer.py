"""A transformer that makes indexes usable in the pipelines of scikit-learn."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._checks import check_choice, check_type, check_whole
from musicsim.search._vector_index import MODES, VectorIndex
from musicsim.search.exact import ExactIndex


class NeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Use an index in scikit-learn's pipelines, before methods that accept a graph of neighbors.

    Such methods have the option ``metric="precomputed"``: for example, Isomap, KNeighborsClassifier and DBSCAN. This is
    scikit-learn's ``KNeighborsTransformer`` with an index of musicsim.

    Parameters
    ----------
    index : index of vectors, optional
        An unfitted index, such as :class:`SpillForest`; by default, :class:`ExactIndex`.
    n_neighbors : int >= 1
    mode : "distance" or "connectivity"
        Entries of the graph: distances, or ones. Graphs of distances contain one more neighbor, because a row of the
        fit is its own first neighbor.

    Attributes
    ----------
    index_ : the fitted index
    n_features_in_, n_samples_fit_ : int

    See Also
    --------
    ExactIndex : Has ``kneighbors_graph``, for a graph without a pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import NeighborsTransformer
    >>> from sklearn.manifold import Isomap
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> isomap = make_pipeline(NeighborsTransformer(n_neighbors=10), Isomap(n_neighbors=10, metric="precomputed"))
    >>> isomap.fit_transform(X).shape
    (60, 2)
    """

    def __init__(self, index: VectorIndex | None = None, n_neighbors: int = 5, mode: str = "distance") -> None:
        self.index, self.n_neighbors, self.mode = index, n_neighbors, mode

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Fit a clone of the index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a SciPy sparse matrix if the index accepts it
        """
        check_whole("n_neighbors", self.n_neighbors, 1)
        check_choice("mode", self.mode, MODES)
        index = ExactIndex() if self.index is None else self.index
        check_type("index", index, VectorIndex, "is, for example, SpillForest()")
        self.index_ = clone(index).fit(validate_data(self, X, dtype=np.float32, accept_sparse="csr"))
        self.n_samples_fit_ = self.index_.n_samples_
        return self

    def transform(self, X: npt.ArrayLike) -> Any:
        """Return the graph from rows to the fitted rows, as a SciPy CSR array of shape (n_queries, n_samples_fit)."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float32, accept_sparse="csr", reset=False)
        return self.index_.kneighbors_graph(rows, self.n_neighbors + (self.mode == "distance"), self.mode)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # the dtype of the graph does not depend on that of the rows
        tags.input_tags.sparse = self.index is None or get_tags(self.index).input_tags.sparse
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_
