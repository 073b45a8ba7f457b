"""The file of a kept value: it holds, or it is as if there were none."""

import logging

import numpy as np
import pytest

from musicsim.library.db.cache import Archive
from musicsim.library.db.changes import Moment

THEN = Moment(7, "mark")


@pytest.fixture
def archive(tmp_path):
    return Archive(
        tmp_path / "value.npz", lambda value: {"value": value}, lambda arrays: arrays["value"], lambda _: True
    )


def test_a_value_comes_back_with_its_moment(archive):
    archive.save(np.arange(5), THEN)
    value, moment = archive.load()
    np.testing.assert_array_equal(value, np.arange(5))
    assert moment == THEN


def test_without_a_file_there_is_none_and_nothing_is_said_of_it(archive, caplog):
    caplog.set_level(logging.DEBUG)
    assert archive.load() is None
    assert not caplog.records


def test_no_single_damaged_bit_ends_a_page(archive, caplog, rng):
    archive.save(np.arange(5), THEN)
    whole = archive.path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        archive.path.write_bytes(damaged)
        archive.load()
    assert str(archive.path) in caplog.text


def test_a_file_of_other_arrays_is_none(archive, tmp_path):
    np.savez(tmp_path / "value.npz", other=np.arange(3))
    assert archive.load() is None
