"""Compare: songs side by side, by ear; the answers teach the library what its listeners mean by similar."""

import streamlit as st

from musicsim.ui.compare_view import show_compare
from musicsim.ui.empty import stop_without_songs
from musicsim.ui.state import snapshot

st.title("Compare", anchor=False)
stop_without_songs(snapshot())
show_compare()
