"""Optional features, one folder each; :mod:`musicsim.hooks` says how each registers itself."""
