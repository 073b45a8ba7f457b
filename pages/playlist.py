"""Draw this page without its frame, for `streamlit run pages/playlist.py`; `app.py` draws both."""

from musicsim.ui.playlist.page import draw

draw()
