"""What stands around every page: the logo, and the little that Streamlit's theme cannot say."""

from importlib.resources import files

__all__ = ["FRAME_CSS", "LOGO"]

_assets = files("musicsim.ui") / "assets"
LOGO = (_assets / "logo.svg").read_text(encoding="utf-8")
FRAME_CSS = (_assets / "frame.css").read_text(encoding="utf-8")
