"""A library as one model sees it at one revision: rows, neighbors, hubs, map.

May use models and the library; reads only.
"""
