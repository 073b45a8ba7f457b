"""Metric learning to rank with several kernels (thesis 4.3.2, equation 4.14)."""

from typing import Any, Self

import numpy.typing as npt

from musicsim._arrays import Float64Array
from musicsim._callbacks import StepCallback
from musicsim.metric._learner import RankingLearner, as_relevance, check_query_weights
from musicsim.metric.kernel_spaces import KernelProjections, KernelSpaces, training_kernels


class MultipleKernelMLR(KernelProjections, RankingLearner):
    """Learn from rankings which descriptions of songs count, such as timbre, tags and lyrics.

    A metric in the feature spaces of several kernels together. For kernel k, song x is the column K_x^k of its
    similarities to the training songs. The squared distance between x and y is the sum over k of (K_x^k - K_y^k)^T W^k
    (K_x^k - K_y^k). The fit solves

        min over W^k >= 0 of sum of <W^k, K^k> + C * mean structured hinge loss.

    Parameters
    ----------
    loss, k, C, solver, admm_steps, tol, max_cuts, n_queries, random_state : as in :class:`MLR`
    structure : "full" or "diagonal"
        W^k is any positive semidefinite matrix, or has one weight per training song (thesis 4.B).

    Attributes
    ----------
    components_, metrics_ : lists of ndarrays of shape (r_k, n_songs) and (n_songs, n_songs)
        L^k and W^k = L^k^T L^k. L^k has no rows if kernel k is not used.
    objective_, dual_bound_, n_cuts_, n_projections_, n_queries_, history_, seconds_ : as in :class:`MLR`
    n_kernels_in_, n_songs_in_ : int

    See Also
    --------
    MLR : One vector per song.
    musicsim.order.PartialOrderEmbedding : Several kernels, from comparisons of pairs.

    Notes
    -----
    In the principal coordinates of the kernels, the penalty is the trace of the metric. With a full structure, the
    problem is that of :class:`MLR` with one block per kernel. Memory per plane: 8 bytes times the sum of r_k^2.

    References
    ----------
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, section
      4.3.2 (equation 4.14).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import MultipleKernelMLR
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(30) % 3
    >>> timbre, noise = np.eye(3)[y] + 0.1 * rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    >>> kernels = [timbre @ timbre.T, noise @ noise.T]
    >>> model = MultipleKernelMLR(C=10).fit(kernels, y)
    >>> model.transform(kernels).shape[0]
    30
    >>> bool(np.trace(model.metrics_[0]) > 10 * np.trace(model.metrics_[1]))  # the second kernel hardly counts
    True
    """

    def fit(
        self, kernels: Any, y: Any, callback: StepCallback | None = None, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn the metrics.

        Parameters
        ----------
        kernels : array-like of shape (n_kernels, n_songs, n_songs), symmetric and positive semidefinite
        y, callback, sample_weight : as in :meth:`MLR.fit`; ``components`` returns a list with one array per kernel
        """
        self._check_parameters()
        matrices = training_kernels(kernels)
        n = len(matrices[0])
        relevance = as_relevance(y, n)
        weights = check_query_weights(sample_weight, n)
        spaces = KernelSpaces.build(matrices, self.structure)
        flat, _ = self._solve(spaces.songs, relevance, spaces.cone, callback, spaces.components, query_weights=weights)
        self.components_ = spaces.components(flat)
        self.n_kernels_in_, self.n_songs_in_ = len(matrices), n
        self._warn_if_zero(flat, "the kernels")
        return self

    def transform(self, kernels: Any) -> Float64Array:
        """Map songs so that Euclidean distance is the learned distance.

        Parameters
        ----------
        kernels : sequence of array-likes of shape (n_new, n_songs), in the order of the fit
            Similarities of new songs to the training songs.

        Returns
        -------
        float64 ndarray of shape (n_new, sum of r_k)
        """
        return self._project(self._check_new(kernels))
