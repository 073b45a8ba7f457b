"""Songs on the disk: what the benchmark of ten million finds among a few thousand."""

import numpy as np
import pytest

from benchmarks.large_library import drawn_vectors
from benchmarks.ten_million import VECTOR_DIMENSIONS, measure, write


def test_files_contain_drawn_rows_and_queries(tmp_path):
    songs = write(tmp_path, 2_500, seed=3)
    drawn = np.concatenate(list(drawn_vectors(2_500 + 1_000 + 200, VECTOR_DIMENSIONS, 3)))
    np.testing.assert_array_equal(songs.rows(3_500), drawn[:3_500])
    np.testing.assert_array_equal(songs.queries(), drawn[3_500:])
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=1e-5)


@pytest.mark.long
def test_measurement_reaches_recall(tmp_path):
    pytest.importorskip("psutil")
    rows = {row["what"]: row for row in measure(tmp_path, 4_000, 0, print, rivals=())}
    for level in (0.95, 0.99):
        assert rows[f"query at recall {level:.2f}"]["recall"] >= level
    for what in ("of 10.0% of the songs", "hubs reduced", "open with 1,000 more"):
        assert rows[what]["recall"] > 0.9
    assert all(row["mb"] > 0 for row in rows.values())
