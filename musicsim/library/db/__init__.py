"""The database itself: tables and their version, transactions, change log, and columns read from it.

May use nothing of the library but its leaf modules.
"""
