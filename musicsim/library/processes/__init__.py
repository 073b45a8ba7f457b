"""Worker processes with limits of time and memory: for scans, for uploads, for copies that browsers play.

May use disk and the methods; knows no table.
"""
