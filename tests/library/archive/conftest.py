"""What extensions add to archives, for tests that need none of them."""

import pytest

from musicsim.explorer.health import backups


@pytest.fixture(autouse=True)
def files_with_passwords(monkeypatch):
    """Files with passwords that extensions would have."""
    names = ("servers.json", "listenbrainz.token", "players.json")
    monkeypatch.setattr(backups, "_files_with_passwords", lambda: names)
