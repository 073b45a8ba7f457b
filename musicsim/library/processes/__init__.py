"""Worker processes with limits of time and memory, for scans, uploads and copies that browsers play.

May import `disk` and the method packages, but not the tables.
"""
