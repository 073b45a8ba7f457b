"""Import of vectors from other programs, on the Train page."""

import tempfile
from dataclasses import asdict
from pathlib import Path

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.refresh.fitting import RepresentationSettings, free_name
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.embeddings.adding import describe_matches
from musicsim.extensions.embeddings.encoder import OWN
from musicsim.extensions.embeddings.files import ENDINGS
from musicsim.extensions.embeddings.store import EmbeddingStore
from musicsim.library import Library
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import start_job

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
