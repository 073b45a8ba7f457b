"""The page alone, for `streamlit run pages/library.py`; its frame is drawn by `app.py`."""

from musicsim.ui.library.page import draw

draw()
