"""The page alone, for `streamlit run pages/train.py`; its frame is drawn by `app.py`."""

from musicsim.ui.train.page import draw

draw()
