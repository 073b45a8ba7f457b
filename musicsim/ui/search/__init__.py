"""The Search page.

May use base and components.
"""
