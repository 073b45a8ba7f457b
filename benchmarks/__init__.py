"""Benchmarks: one file per claim about speed or memory, each against a named rival (``python -m benchmarks.NAME``)."""

import os

os.environ.setdefault("MUSICSIM_EAR", "0")  # the apps that benchmarks start describe no songs in the background
