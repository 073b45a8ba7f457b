"""Draw this page without its frame, for `streamlit run pages/search.py`; `app.py` draws both."""

from musicsim.ui.search.page import draw

draw()
