"""Requests for playlists, searches and training, whose options have a type, default, limits and help.

The command line, the HTTP interface and the pages are built from them. Imports no other part of the package.
"""
