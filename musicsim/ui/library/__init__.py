"""The Library page.

May use base and components.
"""
