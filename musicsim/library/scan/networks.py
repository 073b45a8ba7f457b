"""Networks from extensions that describe new songs during a scan."""

from pathlib import Path

from musicsim.hooks import LibraryNetworks, LoadNetworks
from musicsim.registry import load_hooks


def load_networks(folder: Path) -> list[LibraryNetworks]:
    """Return the networks of all extensions for the library in `folder`."""
    return [load(folder) for load in load_hooks(LoadNetworks)]
