"""Quality, a table or figure of the papers a file: ``python -m experiments.NAME --json``."""
