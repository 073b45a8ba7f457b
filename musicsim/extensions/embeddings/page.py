"""Import of vectors from other programs, and learned ears, on the Teach page."""

import tempfile
from dataclasses import asdict
from pathlib import Path

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import RepresentationSettings, Snapshot, free_name
from musicsim.extensions.embeddings.adding import describe_matches, list_ears, uploads_of
from musicsim.extensions.embeddings.musicnn import ABOUT, find_weights, has_runtime
from musicsim.extensions.embeddings.networks import FRONT_ENDS
from musicsim.extensions.embeddings.representations import OWN
from musicsim.extensions.embeddings.vectors import ENDINGS, EmbeddingStore
from musicsim.library import Library, atomic_path
from musicsim.ui.base import Key, off_if, plain
from musicsim.ui.components import BUSY, start_job, stop_without_songs, watch_job

_ABOUT_EAR = (
    "A network that was trained on tags of other music adds what it learned to *Sound*. In one of two collections of "
    "game music, 44% instead of 38% of the five most similar songs were by the same composer."
)
_RESULT: Key[tuple[Path, str, str] | None] = Key(
    "models_brought", lambda: None, "library folder, error message and report from the last import of vectors"
)


def _import(library: Library, name: str, data: bytes) -> None:
    store = EmbeddingStore(library)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"vectors{Path(name).suffix}"
            path.write_bytes(data)
            about = store.keep(path, name)
        matched = store.match(about.key)
    except (MusicsimError, OSError) as error:
        _RESULT.set((library.folder, str(error), ""))
        return
    lines = [describe_matches(about, matched), *about.problems]
    problem = "" if len(matched.song_ids) else lines.pop(0)
    _RESULT.set((library.folder, problem, "\n".join(lines)))
    if not problem:
        settings = RepresentationSettings(OWN, vectors=about.key, label=about.label)
        start_job(library, "represent", name=free_name(library, settings.name), settings=asdict(settings))


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    file = st.file_uploader(
        f"Embeddings as {', '.join(ENDINGS)}", type=[ending.lstrip(".") for ending in ENDINGS],
        key="models_vectors",
        help="A file with one vector per song, for example from a neural network, and each song's id, path or hash. "
        "The vectors become a model that you can search with, train, and combine with other models.",
    )  # fmt: skip
    if file is not None:
        st.button(
            "Import", icon=":material/input:", key="models_bring",
            on_click=_import, args=(library, file.name, file.getvalue()),
        )  # fmt: skip
    folder, problem, report = _RESULT.get() or (None, "", "")
    if folder != library.folder:
        return
    if problem:
        st.error(plain(problem), icon=":material/error:")
    st.caption("  \n".join(plain(line) for line in report.splitlines()))


def _start_ear(library: Library, name: str, data: bytes, front_end: str) -> None:
    path = uploads_of(library) / Path(name).name
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    start_job(library, "ear", path=str(path), front_end=front_end)


def draw_ear(snapshot: Snapshot, *, busy: bool) -> None:
    stop_without_songs(snapshot)
    library = snapshot.library
    st.caption(_ABOUT_EAR)
    if ears := list_ears(library):
        names = ", ".join(plain(ear.name) for ear in ears)
        in_use = plain(library.models.get().name)
        st.success(f"This library has the ear {names}. In use: {in_use}.", icon=":material/hearing:")
    if not ears or not has_runtime():
        _draw_musicnn(library, busy=busy)
    watch_job(library, kinds=("ear",), revision=snapshot.revision)
    with st.expander("Add another network, or a file of MusiCNN", icon=":material/upload_file:"):
        _draw_upload(library, busy=busy)


def _draw_musicnn(library: Library, *, busy: bool) -> None:
    """Show the button that adds MusiCNN; if it is not installed, first say what is downloaded."""
    label = "Add MusiCNN"
    if find_weights() is None:
        label = "Download and add MusiCNN"
        st.write(f"This downloads {ABOUT} from the Python Package Index.")
    st.button(
        label, icon=":material/hearing:", key="models_ear_musicnn", type="primary", **off_if(busy, BUSY),
        on_click=start_job, args=(library, "ear"),
    )  # fmt: skip


def _draw_upload(library: Library, *, busy: bool) -> None:
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
        on_click=_start_ear, args=(library, file.name, file.getvalue(), front_end),
    )  # fmt: skip
