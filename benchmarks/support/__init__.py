"""Modules that several benchmarks share: data, processes, rivals and the report."""
