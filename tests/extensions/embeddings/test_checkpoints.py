"""Tests that checkpoints are read exactly, and that damaged ones are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.extensions.embeddings.musicnn import read_checkpoint
from tests.extensions.embeddings.checkpoint_files import pack_checkpoint

_NAMES = st.text("abc/_1", min_size=1, max_size=12)
_SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@given(shapes=st.dictionaries(_NAMES, _SHAPES, max_size=6))
def test_reads_every_array(shapes):
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    found = read_checkpoint(*pack_checkpoint(arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


@settings(max_examples=300)
@given(at=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
def test_damage_is_refused_or_harmless(at, value, cut):
    arrays = {"conv/kernel": np.ones((2, 3), np.float32), "conv/bias": np.ones(3, np.float32)}
    index, data = pack_checkpoint(arrays)
    at %= len(index)
    damaged = index[:at] if cut else index[:at] + bytes([value]) + index[at + 1 :]
    try:
        found = read_checkpoint(damaged, data)
    except ValueError:
        return
    assert sum(array.nbytes for array in found.values()) <= len(index) * len(data)


@pytest.mark.parametrize(("index", "data"), [(b"", b""), (bytes(48), b"")])
def test_refuses_other_files(index, data):
    with pytest.raises(ValueError, match="not a table"):
        read_checkpoint(index, data)


def test_refuses_compressed_index():
    index, data = pack_checkpoint({"bias": np.ones(3, np.float32)})
    stop = index.index(bytes(4) + (1).to_bytes(4, "little")) + 8
    with pytest.raises(ValueError, match="compressed"):
        read_checkpoint(index[:stop] + b"\1" + index[stop + 1 :], data)


def test_refuses_arrays_beyond_data_file():
    index, data = pack_checkpoint({"bias": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match="does not fit the data file"):
        read_checkpoint(index, data[:-1])
