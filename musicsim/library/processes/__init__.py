"""Worker processes with time and memory limits, for scans, uploads and copies that browsers play.

This package may import `disk` and the method packages, but not the tables.
"""
