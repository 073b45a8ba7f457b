"""Draw this page without its frame, for `streamlit run pages/evaluate.py`; `app.py` draws both."""

from musicsim.ui.evaluate.page import draw

draw()
