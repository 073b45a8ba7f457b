"""Questions of the Compare page: which to ask next, and what the answers tell.

May use snapshot; the answers themselves lie in the library.
"""
