"""Problems of metric learning to rank, with objectives from the definition and optima by linear programs."""

import itertools

import numpy as np
from scipy import optimize
from sklearn import datasets

from musicsim.relevance import Relevance
from tests.metric.programmes import delta, slow_programme


def standardised(load, n):
    """Return a random part of one of scikit-learn's data sets, with columns of mean 0 and deviation 1."""
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    X, y = X[rows], y[rows]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def random_lists(n, d, seed=0):
    """Return random songs and lists of every length: some songs in neither, some queries with one set only."""
    rng = np.random.default_rng(seed)
    relevant, irrelevant = [], []
    for q in range(n):
        others = rng.permutation(np.delete(np.arange(n), q))
        p = rng.integers(0, 4) if q % 5 else 1
        m = rng.integers(0, n - p)
        relevant.append(others[:p].tolist())
        irrelevant.append(others[p : p + m].tolist())
    return rng.standard_normal((n, d)), Relevance.from_lists(relevant, irrelevant=irrelevant)


def problem(name):
    """Return X and y of one of five tasks."""
    if name == "lists":
        return random_lists(40, 6)
    load, n = {
        "wine": (datasets.load_wine, 60),
        "cancer": (datasets.load_breast_cancer, 50),
        "iris": (datasets.load_iris, 60),
        "digits": (datasets.load_digits, 60),
    }[name]
    return standardised(load, n)


PROBLEMS = ("wine", "cancer", "iris", "digits", "lists")


def as_sets(y):
    """Return lists of the relevant and the irrelevant songs of each query."""
    if isinstance(y, Relevance):
        return [y.relevant(q).tolist() for q in range(len(y))], [y.irrelevant(q).tolist() for q in range(len(y))]
    y = np.asarray(y)
    relevant = [[i for i in np.flatnonzero(y == y[q]).tolist() if i != q] for q in range(len(y))]
    return relevant, [np.flatnonzero(y != y[q]).tolist() for q in range(len(y))]


def squared_distances(X, W):
    """Return the distances of all pairs, (n, n)."""
    return np.array([np.einsum("ij,jk,ik->i", X - x, W, X - x) for x in X])


def mean_hinge(D, y, loss, k):
    """Return the mean structured hinge loss of queries with both sets, from the distances of all pairs."""
    hinges = [
        slow_programme(loss, -D[q, relevant + irrelevant], len(relevant), k)
        for q, (relevant, irrelevant) in enumerate(zip(*as_sets(y), strict=True))
        if relevant and irrelevant
    ]
    return np.mean(hinges)


def plain_weight(X, y, loss="auc", k=10):
    """Return c: from a mean squared distance of 1, the first doubling with which the mean loss falls no further."""
    D = squared_distances(X, np.eye(X.shape[1]))
    c = 1.0 / D.mean()
    while mean_hinge(c * D, y, loss, k) - mean_hinge(2 * c * D, y, loss, k) > 1e-9:  # as in the fit, above rounding
        c *= 2
    return c


def penalty(W, regularizer="trace", c=None):
    if regularizer == "plain":
        return 0.5 * np.sum((W / c - np.eye(len(W))) ** 2)
    return np.trace(W) if regularizer == "trace" else np.linalg.norm(W, axis=1).sum()


def objective(X, y, W, loss="auc", k=10, C=1.0, regularizer="trace"):
    """Compute f(W) in the coordinates of X, by a loop over the queries."""
    c = plain_weight(X, y, loss, k) if regularizer == "plain" else None
    return penalty(W, regularizer, c) + C * mean_hinge(squared_distances(X, W), y, loss, k)


def orders(phi, relevant, irrelevant, loss, k):
    """Return loss and psi(y*) - psi(y) of every order of the songs of a query, (n_orders, 1 + n_features)."""
    scale = 1 / (len(relevant) * len(irrelevant))
    rows = set()
    for order in itertools.permutations(relevant + irrelevant):
        place = {song: i for i, song in enumerate(order)}
        behind = [(i, j) for i in relevant for j in irrelevant if place[j] < place[i]]
        psi = sum((2 * scale * (phi[i] - phi[j]) for i, j in behind), np.zeros(phi.shape[1]))
        rows.add((delta(loss, [song in relevant for song in order], k), *psi.tolist()))
    return np.array(sorted(rows))


class Programme:
    """A linear program in a metric, the norms of its rows and the hinge of each query."""

    def __init__(self, d, structure, n_queries, with_norms):
        if structure == "diagonal":
            self.spread = np.eye(d)
        else:  # symmetric matrices from their upper triangles
            pairs = list(itertools.combinations_with_replacement(range(d), 2))
            self.spread = np.zeros((d, d, len(pairs)))
            for column, (i, j) in enumerate(pairs):
                self.spread[i, j, column] = self.spread[j, i, column] = 1.0
            self.spread = self.spread.reshape(d * d, -1)
        self.d, self.is_full = d, structure == "full"
        n_w, n_norms = self.spread.shape[1], d if with_norms else 0
        self.metric = slice(0, n_w)
        self.norms = slice(n_w, n_w + n_norms)
        self.hinges = slice(n_w + n_norms, n_w + n_norms + n_queries)
        self.cost = np.zeros(self.hinges.stop)
        self.rows, self.limits = [], []

    def require(self, of_metric, least, part=None, place=0):
        """Require <of_metric, W> plus, for one kind of other variables, the one at `place` to be at least `least`."""
        row = np.zeros(len(self.cost))
        row[self.metric] = -(of_metric @ self.spread)
        if part is not None:
            row[part.start + place] = -1.0
        self.rows.append(row)
        self.limits.append(-least)

    def require_direction(self, v):
        """Require v^T W v >= 0."""
        self.require(np.outer(v, v).ravel(), 0.0)

    def require_norm(self, i, u):
        """Require the norm of row i to be at least its product with the unit vector u."""
        self.require(-np.outer(np.eye(self.d)[i], u).ravel(), 0.0, self.norms, i)

    def solve(self):
        """Return the optimum, W and the norms."""
        lower = np.zeros(len(self.cost))
        if self.is_full:
            lower[self.metric] = -np.inf
        solved = optimize.linprog(
            self.cost,
            np.array(self.rows),
            self.limits,
            bounds=np.column_stack([lower, np.full(len(lower), np.inf)]),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert solved.status == 0, solved.message
        return solved.fun, self.spread @ solved.x[self.metric], solved.x[self.norms]

    def solve_on_the_cone(self):
        """Add violated constraints of a full metric until none exceeds 1e-9, then return the optimum."""
        for i, j in itertools.product(range(self.d), repeat=2):
            for sign in (1.0, -1.0):
                self.require_direction(np.eye(self.d)[i] + sign * np.eye(self.d)[j] * (i != j))
        while True:
            n_required = len(self.rows)
            least, flat, norms = self.solve()
            W = flat.reshape(self.d, self.d)
            values, vectors = np.linalg.eigh(W)
            for v in vectors.T[values < -1e-9]:
                self.require_direction(v)
            for i, held in enumerate(norms):
                norm = np.linalg.norm(W[i])
                if norm > held + 1e-9:
                    self.require_norm(i, W[i] / norm)
            if len(self.rows) == n_required:
                return least


def optimum(X, y, loss, k, C, structure="full", regularizer="trace", price=None):
    """Return the optimal objective for a few songs, by enumeration of all rankings.

    A diagonal metric makes a linear program, with `price` the cost of a unit of each weight. The cone of full metrics
    and the norms of rows are approximated from outside, by eigenvectors of negative eigenvalues and by the directions
    of the rows.
    """
    n, d = X.shape
    is_full, with_norms = structure == "full", structure == "full" and regularizer == "l21"
    queries = [(q, r, i) for q, (r, i) in enumerate(zip(*as_sets(y), strict=True)) if r and i]
    programme = Programme(d, structure, len(queries), with_norms)
    programme.cost[programme.norms] = 1.0
    programme.cost[programme.hinges] = C / len(queries)
    if is_full and not with_norms:
        programme.cost[programme.metric] = np.eye(d).ravel() @ programme.spread
    elif not is_full:
        programme.cost[programme.metric] = np.ones(d) if price is None else price
    for slot, (q, relevant, irrelevant) in enumerate(queries):
        differences = X[q] - X
        phi = -np.einsum("ni,nj->nij", differences, differences)
        phi = phi.reshape(n, d * d) if is_full else np.einsum("nii->ni", phi)
        for loss_of_order, *psi in orders(phi, relevant, irrelevant, loss, k):
            programme.require(np.array(psi), loss_of_order, programme.hinges, slot)
    return programme.solve_on_the_cone() if is_full else programme.solve()[0]


def optimum_near_plain(X, y, loss, k, C, structure="full"):
    """Return the optimal objective near the plain metric for a few songs, by a general solver over all rankings.

    A full metric is L L^T, so the result is never below the optimum.
    """
    n, d = X.shape
    c = plain_weight(X, y, loss, k)
    queries = [(q, r, i) for q, (r, i) in enumerate(zip(*as_sets(y), strict=True)) if r and i]
    losses, psis, slots = [], [], []
    for slot, (q, relevant, irrelevant) in enumerate(queries):
        differences = X[q] - X
        phi = -np.einsum("ni,nj->nij", differences, differences).reshape(n, d * d)
        for loss_of_order, *psi in orders(phi, relevant, irrelevant, loss, k):
            losses.append(loss_of_order)
            psis.append(psi)
            slots.append(slot)
    psi, lost, of_query = np.array(psis), np.array(losses), np.eye(len(queries))[slots]
    lower = np.tril_indices(d)
    n_metric = d if structure == "diagonal" else len(lower[0])

    def metric(values):
        if structure == "diagonal":
            return np.diag(values[:d])
        L = np.zeros((d, d))
        L[lower] = values[:n_metric]
        return L @ L.T

    start = np.ones(d) if structure == "diagonal" else np.eye(d)[lower]
    solved = optimize.minimize(
        lambda values: penalty(metric(values), "plain", 1.0) + C * values[n_metric:].mean(),
        np.concatenate([start, np.ones(len(queries))]),
        method="SLSQP",
        bounds=[(0.0 if structure == "diagonal" else None, None)] * n_metric + [(0.0, None)] * len(queries),
        constraints={
            "type": "ineq",
            "fun": lambda values: of_query @ values[n_metric:] + c * psi @ metric(values).ravel() - lost,
        },
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return solved.fun
