"""Stand-ins for hooks of extensions, so that tests of archives work without extensions."""

import pytest

from musicsim.library.archive import backups


@pytest.fixture(autouse=True)
def files_with_passwords(monkeypatch):
    """Declare files with passwords as extensions do."""
    names = ("servers.json", "listenbrainz.token", "players.json")
    monkeypatch.setattr(backups, "files_with_passwords", lambda: names)
