"""The Compare page.

May use base and components.
"""
