"""The navigation script of the test app, arranged like that of the real shell."""

import time

import streamlit as st

from musicsim.ui.base.keys import Key
from musicsim.ui.components import player

st.set_page_config(layout="wide")
EVENTS: Key[list] = Key("test.events", list, "what the player told Python")
THUMBS: Key[dict] = Key("test.thumbs", dict, "opinions by song")
RUNS = Key("test.runs", int, "runs of the script")


def on_event(event: player.PlayerEvent) -> None:
    EVENTS.get().append(f"{event.kind} {event.song_id} {event.value}")
    if event.kind == "thumb":
        THUMBS.get()[event.song_id] = event.value
    if event.kind == "open":
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
with st.bottom:
    player.mount(on_event=on_event, thumbs=THUMBS.get())
st.write(f"runs: {RUNS.get()}")
st.write(f"events: {', '.join(EVENTS.get()) or 'none'}")
page.run()
