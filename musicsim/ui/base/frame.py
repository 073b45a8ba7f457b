"""Files for the pages: their scripts for Streamlit, styles and pictures."""

from functools import cache
from pathlib import Path

_UI = Path(__file__).resolve().parents[1]
_ASSETS = _UI / "assets"
SHELL = str(_UI / "shell.py")
"""The script that Streamlit runs; it draws the frame and one page inside it."""
PAGES = {name: str(_UI / name / "page.py") for name in ("listen", "playlist", "train", "library", "research")}
"""Scripts of the pages, keyed by the name in the page's URL."""


@cache
def asset(name: str) -> str:
    """Return the content of a text file in ``assets/``."""
    return (_ASSETS / name).read_text(encoding="utf-8")


ICON = asset("icon.svg")
LOGO = asset("logo.svg")
FRAME_CSS = asset("frame.css")
