"""The Evaluate page.

May use base and components.
"""
