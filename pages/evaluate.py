"""The page alone, for `streamlit run pages/evaluate.py`; its frame is drawn by `app.py`."""

from musicsim.ui.evaluate.page import draw

draw()
