"""The database: tables and their version, transactions, change log, and columns read from it.

Imports only leaf modules of the library.
"""
