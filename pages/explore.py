"""The page alone, for `streamlit run pages/explore.py`; its frame is drawn by `app.py`."""

from musicsim.ui.explore.page import draw

draw()
