"""The Teach page."""
