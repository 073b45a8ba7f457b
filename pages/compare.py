"""The page alone, for `streamlit run pages/compare.py`; its frame is drawn by `app.py`."""

from musicsim.ui.compare.page import draw

draw()
