"""Draw this page without its frame, for `streamlit run pages/train.py`; `app.py` draws both."""

from musicsim.ui.train.page import draw

draw()
