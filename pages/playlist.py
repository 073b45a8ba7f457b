"""The page alone, for `streamlit run pages/playlist.py`; its frame is drawn by `app.py`."""

from musicsim.ui.playlist.page import draw

draw()
