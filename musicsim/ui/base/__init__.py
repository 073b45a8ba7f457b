"""What every page stands on: session state, text, frame, background tasks.

Knows no component and no page.
"""
