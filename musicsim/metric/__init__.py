"""Metrics learned from who is similar to whom."""
