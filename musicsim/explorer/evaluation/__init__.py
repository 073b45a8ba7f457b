"""Quality of models on a library, and the speed of search indexes.

May use learning, snapshot and models; writes nothing.
"""
