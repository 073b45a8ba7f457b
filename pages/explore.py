"""Draw this page without its frame, for `streamlit run pages/explore.py`; `app.py` draws both."""

from musicsim.ui.explore.page import draw

draw()
