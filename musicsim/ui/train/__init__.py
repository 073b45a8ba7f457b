"""The Train page.

May use base and components.
"""
