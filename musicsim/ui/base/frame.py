"""Files of the pages: scripts, styles and pictures."""

from functools import cache
from pathlib import Path

_UI = Path(__file__).resolve().parents[1]
SHELL = str(_UI / "shell.py")
"""The script that Streamlit runs: the frame, with one of the pages inside."""
PAGES = {
    name: str(_UI / name / "page.py") for name in ("listen", "playlist", "train", "compare", "evaluate", "library")
}
"""Files of the pages, by the name in their address."""


@cache
def asset(name: str) -> str:
    """Return the text of a file in ``assets/``."""
    return (_UI / "assets" / name).read_text(encoding="utf-8")


ICON = asset("icon.svg")
LOGO = asset("logo.svg")
FRAME_CSS = asset("frame.css")
