"""Problems of six songs with known optima over all rankings, for solvers that only approximate them.

``python -m tests.metric.small_problems`` solves all of them by ADMM in 15 minutes. It prints those that end more than 1
% above the optimum.
"""

import itertools
import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from musicsim.metric import MLR, MultipleKernelMLR
from tests.metric import truth

KINDS = ("full", "diagonal", "kernels, full", "kernels, diagonal")
TOL = 1e-4
"""Of the optimum of full kernels, which is the certified bound of the default solver."""


def songs_and_kernels(seed):
    X, y = truth.random_lists(6, 3, seed)
    return X, y, [X @ X.T + np.eye(6), np.exp(-truth.squared_distances(X, np.eye(3)) / 6)]


def optimum(kind, loss, C, seed):
    """Return the optimal objective, or a lower bound for full kernels."""
    X, y, kernels = songs_and_kernels(seed)
    if kind in ("full", "diagonal"):
        return truth.optimum(X, y, loss, 2, C, kind)
    if kind == "kernels, diagonal":
        price = np.concatenate([np.diag(K) for K in kernels])
        return truth.optimum(np.hstack(kernels), y, loss, 2, C, "diagonal", price=price)
    model = MultipleKernelMLR(loss, k=2, C=C, tol=TOL, max_cuts=2000).fit(kernels, y)
    assert model.objective_ - model.dual_bound_ <= TOL * model.objective_
    return model.dual_bound_


def by_admm(kind, loss, C, seed, n_steps):
    """Return the objective after ADMM with this number of steps per call."""
    X, y, kernels = songs_and_kernels(seed)
    parameters = {"loss": loss, "k": 2, "C": C, "solver": "admm", "admm_steps": n_steps}
    structure = "diagonal" if kind.endswith("diagonal") else "full"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result is compared with the optimum
        if kind.startswith("kernels"):
            return MultipleKernelMLR(structure=structure, **parameters).fit(kernels, y).objective_
        return MLR(structure=structure, **parameters).fit(X, y).objective_


def main():
    above = []
    for kind, C, seed in itertools.product(KINDS, (1.0, 3.0, 100.0), range(20)):
        best = optimum(kind, "auc", C, seed)
        for n_steps in (1, 10, 100, 1000):
            above.append(by_admm(kind, "auc", C, seed, n_steps) / best - 1)
            if above[-1] > 0.01:
                sys.stdout.write(f"{kind}, C {C:g}, seed {seed}, {n_steps} steps: {above[-1]:.2%} above\n")
    n_bad = sum(a > 0.01 for a in above)
    sys.stdout.write(f"{len(above)} fits, {n_bad} more than 1 % above; the worst {max(above):.2%}\n")


if __name__ == "__main__":
    main()
