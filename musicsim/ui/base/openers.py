"""Libraries, models, snapshots and walks that all sessions share; pages never change them."""

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import streamlit as st

from musicsim import codebook, playlist, search
from musicsim.errors import ModelError
from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.search.uploads import warm_up as start_workers
from musicsim.explorer.snapshot.filtering import filter_choices
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord
from musicsim.public import is_public
from musicsim.ui.base.keys import LIBRARY, MODEL

BY_STATE: dict[str | type[Any], Callable[[Any], Any]] = {
    Library: lambda library: (library.folder, library.revision),
    Snapshot: lambda snapshot: (snapshot.library.folder, snapshot.revision, snapshot.model_id),
}
"""For caches that are valid until the library changes."""


def active_library() -> Library:
    """Return the library of this session, or the default one if that was deleted."""
    names = [folder.name for folder in library_folders()]
    if LIBRARY.get() not in names:
        LIBRARY.set(names[0])
    return open_library(LIBRARY.get())


def find_chosen_model() -> ModelRecord | None:
    """Return the chosen model, the active one if that was deleted, or None without models."""
    models = {record.id: record for record in active_library().models.all()}
    if MODEL.get() not in models:
        MODEL.set(next((record.id for record in models.values() if record.is_active), None))
    return models.get(MODEL.get() or "")


def active_model() -> str | None:
    """Return the id of the chosen model; if its files are gone, of the oldest model that has files."""
    chosen, models = find_chosen_model(), active_library().models
    if chosen is None or models.is_whole(chosen):
        return chosen.id if chosen else None
    return next((record.id for record in models.all() if models.is_whole(record)), chosen.id)


@st.cache_resource(max_entries=6, show_spinner=False, hash_funcs=BY_STATE)
def _snapshot(library: Library, model_id: str | None) -> Snapshot:
    taken = take_snapshot(library, model_id)
    with suppress(ModelError):  # files of the model are missing: pages that compare songs report it
        taken.build_index_in_background()
        if not is_public():
            for hook in load_hooks("after_snapshot"):  # function(snapshot: Snapshot) -> None, which must not block
                hook(taken)
    return taken


def snapshot(model_id: str | None = None) -> Snapshot:
    """Return the active library under a model, by default the chosen one; all sessions share it."""
    return _snapshot(active_library(), model_id or active_model())


choices_of = st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)(filter_choices)
"""Return the filters that the songs of a snapshot offer."""


@st.cache_resource(max_entries=4, show_spinner="Weighing what songs have in common…", hash_funcs=BY_STATE)
def walk(snapshot: Snapshot) -> Walk:
    """Return the walk that generates playlists from a snapshot."""
    return Walk(snapshot)


@st.cache_resource(show_spinner=False)
def warm_up() -> None:
    """Prepare the first search and playlist in the background, once per process."""
    start_workers(active_library())
    current = snapshot()

    def import_all() -> None:
        with suppress(ImportError):
            import openTSNE  # noqa: F401

        _ = codebook.Codebook, playlist.PlaylistModel, search.ExactIndex  # each loads its module
        current.find("a")  # with a million songs, the first letter typed would take seconds
        understood(current, "a")
        # Streamlit collects garbage after every run of a page; this keeps it from visiting all modules each time
        gc.collect()
        gc.freeze()

    threading.Thread(target=import_all, name="warm-up", daemon=True).start()
