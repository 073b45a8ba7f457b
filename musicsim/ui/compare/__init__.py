"""Comparisons by ear, a section of the Train page."""
