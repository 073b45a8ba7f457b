"""What can be heard of a song, by name, for options and columns: nothing is imported that computes it."""

KEYS = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
MODES = ("major", "minor")
HEARD = ("tempo", "loudness", "brightness", "energy")
"""What can be heard of songs as a number: columns, and filters, colours and orders of the same names."""
