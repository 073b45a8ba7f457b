"""What can be asked for: playlists, searches, trainings, each option with its type, default, limits and help said once.

Command line, HTTP interface and pages are made from it. It uses nothing of the package, and no heavy library.
"""
