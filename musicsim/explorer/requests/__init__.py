"""Requests for playlists, searches and trainings, whose options have a type, default, limits and help.

Command line, HTTP interface and pages are made from them. Uses no other part of the package, and no large library.
"""
