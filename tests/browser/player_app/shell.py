"""The navigation script of the test app, arranged like that of the real shell."""

import time

import streamlit as st

from musicsim.ui.base.keys import Key, read_event
from musicsim.ui.base.scripts import component

KEY = "musicsim-player"
st.set_page_config(layout="wide")
ASKED: Key[list] = Key("test.asked", list, "pages that the client has asked for")
RUNS = Key("test.runs", int, "runs of the script")


def show_page() -> None:
    ASKED.get().append(read_event(KEY, "go")["page"])
    st.switch_page("views/second.py")


page = st.navigation(
    [
        st.Page("views/first.py", title="First", default=True),
        st.Page("views/second.py", title="Second"),
        st.Page("views/third.py", title="Third"),
    ]
)
RUNS.set(RUNS.get() + 1)
if page.title == "Second":
    time.sleep(1.0)  # like a shell that opens a large library first
context = {"library": "x", "model": "", "modelId": "", "revision": 1, "isOwner": False, "keepsPlays": False}
context["session"] = {"tab": "a", "restored": ""}
with st.bottom:
    component("web/frame.js")(key=KEY, data=context, height="content", on_go_change=show_page)
st.write(f"runs: {RUNS.get()}")
st.write(f"asked for: {', '.join(ASKED.get()) or 'nothing'}")
page.run()
