"""Tests of hub reduction in a library too large to precompute the moments of every song."""

import numpy as np
import pytest

from benchmarks.large_library import write_library
from musicsim.explorer.snapshot.model_rows import HubReduction
from musicsim.explorer.snapshot.snapshot import take_snapshot


class Group:
    """Rows of which half are close together, including the query."""

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        X = rng.normal(size=(n, 12)).astype(np.float32)
        X[: n // 2] *= 0.2
        self.ids, self.X = np.arange(n), X

    def vectors(self, rows) -> np.ndarray:
        return self.X[rows]

    def nearest(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        distances = np.linalg.norm(self.X - self.X[0], axis=1)
        order = np.argsort(distances, kind="stable")[1 : k + 1]
        return distances[order], order


def hub_reduction(rows, **options) -> HubReduction:
    return HubReduction(len(rows.ids), rows.vectors, lambda: rows.proximity, **options)


@pytest.mark.parametrize("n", [2_000, 12_000])
def test_adjusted_distance_is_independent_of_k(n, rng):
    rows = Group(n, rng)
    hubs = hub_reduction(rows, max_in_advance=0)
    many = hubs.adjust_distances(rows.X[0], *rows.nearest(500))
    for k in (1, 10, 100):
        np.testing.assert_allclose(hubs.adjust_distances(rows.X[0], *rows.nearest(k)), many[:k], rtol=1e-9)
    assert len(hubs.adjust_distances(rows.X[0], *rows.nearest(0))) == 0


def test_on_demand_distance_equals_precomputed_distance(tmp_path):
    """Up to 5,000 songs are averaged in full, and each is compared with the same 1,000 songs."""
    with write_library(tmp_path / "library", 700) as library:
        rows = take_snapshot(library).model_rows
        in_advance, on_demand = hub_reduction(rows), hub_reduction(rows, max_in_advance=0)
        for row in (0, 333, 699):
            distances, near = (found[0] for found in rows.index.query(rows.X[row : row + 1], 200))
            one, other = (way.adjust_distances(rows.X[row], distances, near) for way in (in_advance, on_demand))
            np.testing.assert_allclose(other, one, rtol=1e-9)
