"""One file a claim about speed or memory, against a named rival: ``python -m benchmarks.NAME``."""
