"""The page without its frame, for `streamlit run pages/listen.py`; `app.py` draws both."""

from musicsim.ui.listen.page import draw

draw()
