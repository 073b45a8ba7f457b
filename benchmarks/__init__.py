"""Benchmarks: one file per claim about speed or memory, each against a named rival (``python -m benchmarks.NAME``)."""
