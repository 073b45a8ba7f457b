"""Names of descriptors, for options and columns, without importing the code that computes them."""

KEYS = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
MODES = ("major", "minor")
HEARD = ("tempo", "loudness", "brightness", "energy")
"""Numeric descriptors: columns, and filters, colors and sort orders of the same names."""
