"""Draw this page without its frame, for `streamlit run pages/compare.py`; `app.py` draws both."""

from musicsim.ui.compare.page import draw

draw()
