"""What players of other programs are answered, by which ids they know songs, and whether they are answered at all.

May use search, playlists and snapshot; knows nothing of HTTP.
"""
