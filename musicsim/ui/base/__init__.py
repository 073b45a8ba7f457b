"""Common parts of all pages: session state, text, frame and background tasks."""
