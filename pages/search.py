"""The page alone, for `streamlit run pages/search.py`; its frame is drawn by `app.py`."""

from musicsim.ui.search.page import draw

draw()
