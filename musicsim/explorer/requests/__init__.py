"""Requests for playlists, searches and training. Each option has a type, a default, limits and a help text.

The command line, the HTTP interface and the forms are built from these options. Imports no other part of the package.
"""
