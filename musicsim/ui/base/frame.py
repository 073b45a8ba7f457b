"""What stands around every page: their files, the logo, and the little that Streamlit's theme cannot say."""

from pathlib import Path

from musicsim.ui.base.asset import asset

_UI = Path(__file__).resolve().parents[1]
_NAMES = ("explore", "search", "playlist", "train", "compare", "evaluate", "library")
SHELL = str(_UI / "shell.py")
"""The script that Streamlit runs: the frame, with one of the pages inside."""
PAGES = {name: str(_UI / name / "page.py") for name in _NAMES}
"""Files of the pages, by the name in their address."""

ICON = asset("icon.svg")
LOGO = asset("logo.svg")
FRAME_CSS = asset("frame.css")
