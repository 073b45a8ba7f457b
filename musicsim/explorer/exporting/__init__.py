"""Everything out of a library, for other programs: vectors, neighbours, the map, splits, tags, plays and answers.

May use learning, snapshot and models; writes the files that it is asked for only.
"""
