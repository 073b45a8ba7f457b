"""Names of descriptors, for options and columns; importing them does not load the code that computes descriptors."""

KEYS = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
MODES = ("major", "minor")
HEARD = ("tempo", "loudness", "brightness", "energy")
"""Names of the numeric descriptors, used for columns, filters, colors and sort orders."""
