"""The Research page."""
