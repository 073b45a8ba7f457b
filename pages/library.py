"""Draw this page without its frame, for `streamlit run pages/library.py`; `app.py` draws both."""

from musicsim.ui.library.page import draw

draw()
