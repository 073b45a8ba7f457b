"""Listening tests: models compared by people who hear their results blind, each by a link of their own.

May use search; what is graded lies in the library.
"""
