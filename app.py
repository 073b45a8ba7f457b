"""What `streamlit run app.py` serves; the app itself is :mod:`musicsim.ui.app`."""

from musicsim.ui.app import app

__all__ = ["app"]
