"""Search by example: the nearest songs, thumbs on results, and why two songs are alike.

May use snapshot and models; writes nothing.
"""
