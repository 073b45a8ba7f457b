"""Draw this page without its frame, for `streamlit run pages/research.py`; `app.py` draws both."""

from musicsim.ui.research.page import draw

draw()
