"""Sound from outside the library: a file, which can be dropped anywhere on the page, or a recording."""

import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.explorer.search.query import Example
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.scan.files import content_hash
from musicsim.public import is_public
from musicsim.ui.base.keys import CHOSEN, MARKED
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.scripts import component
from musicsim.ui.base.text import plain, toast_errors
from musicsim.ui.base.uploads import EXAMPLE, Upload
from musicsim.ui.components.jobs_view import watch_one
from musicsim.ui.listen.seed import WORDS, Seed, start_song

FILE_KEY, MICROPHONE_KEY = "search_file", "search_microphone"
_RECORDING = "your recording"


def add_sound() -> None:
    """Show a button for files and the microphone; the whole page accepts dropped files."""
    with st.popover("Add sound", key="listen_sound", help="A file or a recording. You can drop a file anywhere here."):
        st.file_uploader("Drop a file", type=UPLOAD_TYPES, key=FILE_KEY, on_change=_take_upload, args=(FILE_KEY,))
        st.audio_input("Or record", key=MICROPHONE_KEY, on_change=_take_upload, args=(MICROPHONE_KEY,))
    upload = EXAMPLE.get()
    component("drop_anywhere")(key="listen_drop", data={"taken": upload.digest if upload else ""}, height="content")


def _take_upload(key: str) -> None:
    """Start the queue from the new file or recording."""
    before = EXAMPLE.get()
    if before is not None and before.decoding is not None:
        before.decoding.drop()
    if before is None and CHOSEN.get() is None:
        WORDS.set("")  # until now, the words were the seed
    sent = st.session_state[key]
    MARKED.set(MARKED.default())
    if sent is None:
        EXAMPLE.set(None)
    else:
        data = sent.getvalue()  # the bytes that Streamlit holds; getbuffer() would copy them
        EXAMPLE.set(Upload(sent.name if key == FILE_KEY else _RECORDING, data, content_hash(data)))


def show_upload_actions(snapshot: Snapshot, seed: Seed) -> None:
    """Show notes about an upload, and further actions on it."""
    upload, example, song = seed.upload, seed.example, seed.song
    if upload is None or not isinstance(example, Example):
        return
    for note in example.notes:
        st.caption(f":material/info: {plain(note)}")
    is_owner = not is_public()
    with st.container(horizontal=True, vertical_alignment="center"):
        if example.is_cut and not upload.is_whole and is_owner:
            st.button("Analyze the whole", icon=":material/hearing:", on_click=_analyze_whole, args=(upload,))
        if song is not None:
            st.caption(f"This recording is in your library: {plain(song.label)}.")
            st.button("Show it", icon=":material/scatter_plot:", on_click=start_song, args=(snapshot, song.id))
        elif upload.name != _RECORDING and is_owner and not watch_one(snapshot.library, upload.job_id):
            st.button("Add to the library", icon=":material/add:", on_click=_add_upload, args=(snapshot, upload))


def _analyze_whole(upload: Upload) -> None:
    upload.is_whole, upload.decoding = True, None


def _add_upload(snapshot: Snapshot, upload: Upload) -> None:
    with toast_errors():
        path = keep_upload(snapshot.library, upload.name, upload.data)
        upload.job_id = jobs.start(snapshot.library, "add", {"paths": [str(path)]})
