"""Quality of models on a library, and the tables of the papers.

May use learning, snapshot and models; writes reports only.
"""
