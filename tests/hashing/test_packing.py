"""Tests of bits in words, and distances between them, against Python integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from musicsim.hashing import hamming_distances, pack_bits, unpack_bits

bit_tables = st.tuples(st.integers(1, 5), st.integers(1, 200)).flatmap(lambda shape: arrays(bool, shape))


@given(bits=bit_tables)
def test_unpack_restores_bits(bits):
    codes = pack_bits(bits)
    assert codes.dtype == np.uint64
    assert codes.shape == (len(bits), -(-bits.shape[1] // 64))
    assert np.array_equal(unpack_bits(codes, bits.shape[1]), bits)


@given(bits=bit_tables)
def test_bit_j_is_bit_j_of_integer(bits):
    for row, code in zip(bits, pack_bits(bits), strict=True):
        whole = sum(1 << j for j in np.flatnonzero(row).tolist())
        assert sum(int(word) << 64 * w for w, word in enumerate(code)) == whole


@given(bits=bit_tables)
def test_distances_count_differing_bits(bits):
    codes = pack_bits(bits)
    truth = (bits[:, None] != bits).sum(axis=2)
    assert np.array_equal(hamming_distances(codes, codes), truth)


def test_packs_numbers_0_and_1():
    assert np.array_equal(pack_bits(np.array([[1.0, 0.0, 1.0]])), [[5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_bits(np.zeros((3, 0))), r"bits has shape \(3, 0\)"),
        (lambda: pack_bits([0, 1]), r"bits has shape \(2,\)"),
        (lambda: pack_bits([[0, 2]]), "bits must be 0 or 1"),
        (lambda: unpack_bits(np.zeros((2, 1), np.uint64), 65), "n_bits=65 must be from 1 to 64"),
        (lambda: unpack_bits(np.zeros((2, 1), np.int64), 3), "codes must be uint64, .* not int64"),
        (
            lambda: hamming_distances(np.zeros((2, 1), np.uint64), np.zeros((2, 2), np.uint64)),
            "the widths must be equal",
        ),
    ],
)
def test_rejects_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
