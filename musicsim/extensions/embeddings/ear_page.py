"""A learned ear, on the Train page."""

from pathlib import Path

import streamlit as st

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.embeddings.adding import uploads_of
from musicsim.extensions.embeddings.front_ends import FRONT_ENDS
from musicsim.extensions.embeddings.weights import ABOUT, find_weights
from musicsim.library import Library
from musicsim.library.disk.arrays import atomic_path
from musicsim.ui.base.text import off_if
from musicsim.ui.components.jobs_view import BUSY, start_job

_ABOUT = (
    "A network that was trained on tags of other music adds what it learned to *Sound*. In one of two collections of "
    "game music, 43% instead of 33% of the five most similar songs were by the same composer."
)


def _start(library: Library, name: str, data: bytes, front_end: str) -> None:
    path = uploads_of(library) / Path(name).name
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    start_job(library, "ear", path=str(path), front_end=front_end)


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    st.caption(_ABOUT)
    _draw_musicnn(snapshot.library, busy=busy)
    file = st.file_uploader("Package musicnn, or an ONNX network", type=["whl", "onnx"], key="models_ear")
    if file is None:
        return
    front_end = ""
    if not file.name.endswith(".whl"):
        front_end = st.selectbox(
            "Front end", list(FRONT_ENDS), key="models_ear_front_end",
            help="The mel spectrogram that the network was trained with.",
        )  # fmt: skip
    st.button(
        "Add the ear", icon=":material/hearing:", key="models_ear_add", **off_if(busy, BUSY),
        on_click=_start, args=(snapshot.library, file.name, file.getvalue(), front_end),
    )  # fmt: skip


def _draw_musicnn(library: Library, *, busy: bool) -> None:
    """Show the button that adds MusiCNN; if it is not installed, ask first whether to download it."""
    place, label = st.container(), "Add MusiCNN"
    if find_weights() is None:
        place, label = st.popover(label, icon=":material/hearing:"), "Download and add"
        place.write(f"This downloads {ABOUT} from the Python Package Index.")
    place.button(
        label, icon=":material/hearing:", key="models_ear_musicnn", **off_if(busy, BUSY),
        on_click=start_job, args=(library, "ear"),
    )  # fmt: skip
