"""The Explore page.

May use base and components.
"""
