"""Files for the pages: scripts, styles and pictures."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

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


def scripts(*names: str) -> str:
    """Return scripts joined to one module, with the functions that all components have."""
    return "".join(asset(f"{name}.js") for name in ("leaving", *names))


def component(name: str, *before: str, isolate_styles: bool = True) -> Callable[..., Any]:
    """Return a component made of the scripts in `before`, the script `name` and, if it exists, the style `name`."""
    css = asset(f"{name}.css") if (_ASSETS / f"{name}.css").exists() else None
    js = scripts(*before, name)
    return st.components.v2.component(f"musicsim_{name}", css=css, js=js, isolate_styles=isolate_styles)


ICON = asset("icon.svg")
LOGO = asset("logo.svg")
FRAME_CSS = asset("frame.css")
