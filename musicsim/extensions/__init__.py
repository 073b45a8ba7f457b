"""Optional features, one folder each, registered through :mod:`musicsim.hooks`."""
