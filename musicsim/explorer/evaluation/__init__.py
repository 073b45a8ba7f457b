"""Quality of models on a library, and the speed of search indexes.

This package may import learning, snapshot and models. It does not write to the library.
"""
