"""The database itself: tables, migrations, transactions, change log, and columns read from it.

May use nothing of the library but its leaf modules.
"""
