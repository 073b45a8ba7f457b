"""Modules that the experiments use: data, rivals, measures, and the tables of the documents."""
