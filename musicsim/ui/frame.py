"""What stands around every page: their names, the logo, and the little that Streamlit's theme cannot say."""

from importlib.resources import files

__all__ = ["FRAME_CSS", "LOGO", "PAGES"]

PAGES = {"explore": "explore.py", "search": "search.py", "playlist": "playlist.py", "library": "library.py"}
"""Files of the pages beside the shell, by the name in their address."""

_assets = files("musicsim.ui") / "assets"
LOGO = (_assets / "logo.svg").read_text(encoding="utf-8")
FRAME_CSS = (_assets / "frame.css").read_text(encoding="utf-8")
