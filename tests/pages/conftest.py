"""Fixtures of playlist pages."""

import pytest

from musicsim.explorer.refresh.refresh import refresh


@pytest.fixture
def taught(full):
    """The tiny library with playlists of two kinds: one artist on each, or songs of all."""
    by_artist: dict[str, list[int]] = {}
    for song in full.songs():
        by_artist.setdefault(song.artist, []).append(song.id)
    mixed = [ids[n] for n in range(4) for ids in by_artist.values()]
    lists = [(f"{artist} {n}", "one artist", ids) for artist, ids in by_artist.items() for n in range(12)]
    lists += [(f"mixed {n}", "mixed", mixed[n % 3 :]) for n in range(12)]
    full.add_playlists(lists, source="test")
    refresh(full)
    return full
