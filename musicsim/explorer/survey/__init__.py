"""Questions in Compare: selection of the next one, and reliability of the answers.

May use snapshot; the answers are stored in the library.
"""
