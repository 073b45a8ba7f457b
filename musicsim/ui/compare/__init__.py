"""Comparisons by ear, a section of the Teach page."""
