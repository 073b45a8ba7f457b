"""Fixtures with listening histories of other programs, from the shared data."""

import pytest

from tests.shared import SHARED

FIXTURES = SHARED / "importers"


needs_fixtures = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="no importer fixtures: set MUSICSIM_SHARED_DATA to the folder of public data sets"
)


def skipped(batch):
    return {entry.reason: entry.count for entry in batch.skipped}
