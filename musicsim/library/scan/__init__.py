"""From folders to songs: find files, analyse them in worker processes, enter them.

May use the store and everything below it.
"""
