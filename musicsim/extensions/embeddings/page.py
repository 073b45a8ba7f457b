"""The Train page's import of vectors from other programs."""

import tempfile
from dataclasses import asdict
from pathlib import Path

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.refresh.fitting import RepresentationSettings, free_name
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.embeddings.adding import match_words
from musicsim.extensions.embeddings.encoder import OWN
from musicsim.extensions.embeddings.files import ENDINGS
from musicsim.extensions.embeddings.store import EmbeddingStore
from musicsim.library import Library
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components.jobs_view import start_job

_BROUGHT: Key[tuple[Path, str, str] | None] = Key(
    "models_brought",
    lambda: None,
    "the library that vectors of the listener's own were brought to, what is wrong with them, and what came of them",
)


def _bring(library: Library, name: str, data: bytes) -> None:
    store = EmbeddingStore(library)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"vectors{Path(name).suffix}"
            path.write_bytes(data)
            about = store.keep(path, name)
        matched = store.match(about.key)
    except (MusicsimError, OSError) as error:
        _BROUGHT.set((library.folder, str(error), ""))
        return
    lines = [match_words(about, matched), *about.problems]
    if not len(matched.song_ids):
        _BROUGHT.set((library.folder, lines[0], "\n".join(lines[1:])))
        return
    _BROUGHT.set((library.folder, "", "\n".join(lines)))
    settings = RepresentationSettings(OWN, vectors=about.key, label=about.label)
    start_job(library, "represent", name=free_name(library, settings.name), settings=asdict(settings))


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the import of a file of vectors."""
    library = snapshot.library
    file = st.file_uploader(
        f"Embeddings as {', '.join(ENDINGS)}", type=[ending.lstrip(".") for ending in ENDINGS],
        key="models_vectors",
        help="One vector per song, from a neural network or anything else, with the ids, paths or hashes "
        "of the songs. They become a model to search with and to train on, alone or with others.",
    )  # fmt: skip
    if file is not None:
        st.button(
            "Import", icon=":material/input:", key="models_bring", disabled=busy,
            on_click=_bring, args=(library, file.name, file.getvalue()),
        )  # fmt: skip
    told = _BROUGHT.get()
    if told is None or told[0] != library.folder:
        return
    _, wrong, came = told
    if wrong:
        st.error(plain(wrong), icon=":material/error:")
    st.caption("  \n".join(plain(line) for line in came.splitlines()))
