"""Everything that writes models: native, learned, combined, imported ones, their maps and vectors.

May use learning, playlists, snapshot and models; pages, commands and jobs call it, and nothing below knows it.
"""
