"""Tests of the file of a cached value: valid, or treated as absent."""

import logging

import numpy as np
import pytest

from musicsim.library.db.cache import Archive
from musicsim.library.db.changes import LoggedRevision

THEN = LoggedRevision(7, "token")


@pytest.fixture
def archive(tmp_path):
    return Archive(
        tmp_path / "value.npz", lambda value: {"value": value}, lambda arrays: arrays["value"], lambda _: True
    )


def test_value_round_trips_with_revision(archive):
    archive.save(np.arange(5), THEN)
    value, revision = archive.load()
    np.testing.assert_array_equal(value, np.arange(5))
    assert revision == THEN


def test_absent_file_gives_none_without_log(archive, caplog):
    caplog.set_level(logging.DEBUG)
    assert archive.load() is None
    assert not caplog.records


@pytest.mark.long
def test_damaged_bit_is_logged_and_not_raised(archive, caplog, rng):
    archive.save(np.arange(5), THEN)
    whole = archive.path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        archive.path.write_bytes(damaged)
        archive.load()
    assert str(archive.path) in caplog.text


def test_file_with_other_arrays_gives_none(archive, tmp_path):
    np.savez(tmp_path / "value.npz", other=np.arange(3))
    assert archive.load() is None
