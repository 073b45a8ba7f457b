"""Quality experiments, one file per table or figure of the papers: ``python -m experiments.NAME --json``."""
