"""What stands around every page: their names, the logo, and the little that Streamlit's theme cannot say."""

from musicsim.ui.base.asset import asset

__all__ = ["FRAME_CSS", "ICON", "LOGO", "PAGES"]

_NAMES = ("explore", "search", "playlist", "train", "compare", "evaluate", "library")
PAGES = {name: f"{name}.py" for name in _NAMES}
"""Files of the pages beside the shell, by the name in their address."""

ICON = asset("icon.svg")
LOGO = asset("logo.svg")
FRAME_CSS = asset("frame.css")
