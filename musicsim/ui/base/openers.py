"""A session's library and model, as shown in its URL, and the objects that all sessions share."""

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import streamlit as st

from musicsim import codebook, playlist, search
from musicsim.errors import ModelError
from musicsim.explorer import Snapshot, open_library
from musicsim.explorer.libraries import library_folders
from musicsim.explorer.search.uploads import warm_up as start_workers
from musicsim.explorer.snapshot.filtering import filter_choices
from musicsim.explorer.snapshot.map_columns import colors_offered
from musicsim.explorer.snapshot.snapshot import share_snapshot
from musicsim.explorer.snapshot.words import parse_words
from musicsim.hooks import AfterSnapshot
from musicsim.library import Library, ModelRecord
from musicsim.public import is_public
from musicsim.registry import load_hooks
from musicsim.ui.base.keys import LIBRARY, MODEL, NOT_HERE, SECTIONS, Key, close_dialog, forget_library_state
from musicsim.ui.base.runtime import is_history_navigation

BY_STATE: dict[str | type[Any], Callable[[Any], Any]] = {
    Library: lambda library: (library.place, library.revision),
    Snapshot: lambda snapshot: (snapshot.library.place, snapshot.revision, snapshot.model_id),
}
"""Hash functions for caches that are valid until the library changes."""

_ADDRESS: Key[tuple[str, dict[str, str]] | None] = Key("address", lambda: None, "page and query in the browser")


def active_library() -> Library:
    """Return this session's library; if that one is not there any more, tell the user, and return the default one."""
    names = [folder.name for folder in library_folders()]
    if LIBRARY.get() not in names:
        NOT_HERE.set([*NOT_HERE.get(), f"the library “{LIBRARY.get()}”"])
        LIBRARY.set(names[0])
    return open_library(LIBRARY.get())


def find_chosen_model() -> ModelRecord | None:
    """Return the chosen model, or the active one if none was chosen or it was deleted; None if there are no models."""
    models = active_library().models
    chosen = next((record for record in models.all() if record.id == MODEL.get()), None)
    return chosen or models.active()


def active_model() -> str | None:
    """Return the id of the chosen model; if its files are missing, return the id of the oldest model that has files."""
    chosen, models = find_chosen_model(), active_library().models
    if chosen is None or models.is_whole(chosen):
        return chosen.id if chosen else None
    return next((record.id for record in models.all() if models.is_whole(record)), chosen.id)


@st.cache_resource(max_entries=6, show_spinner=False, hash_funcs=BY_STATE)
def _snapshot(library: Library, model_id: str | None) -> Snapshot:
    current = share_snapshot(library, model_id)
    with suppress(ModelError):  # the model's files are missing; pages that compare songs report it
        if current.model_rows is not None:
            current.model_rows.build_index_in_background()
        if not is_public():
            for hook in load_hooks(AfterSnapshot):
                hook(current)
    return current


def snapshot(model_id: str | None = None) -> Snapshot:
    """Return the snapshot of the active library that all sessions share; the default model is the chosen one."""
    return _snapshot(active_library(), model_id or active_model())


colors_of = st.cache_resource(max_entries=8, show_spinner=False, hash_funcs=BY_STATE)(colors_offered)
"""Return the properties that can color the map, best first (cached)."""
choices_of = st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)(filter_choices)
"""Return the available filter values for the songs in a snapshot (cached)."""


@st.cache_resource(show_spinner=False)
def warm_up() -> None:
    """Prepare the first search and playlist in the background, once per process."""
    # Streamlit collects garbage after every run; exempt the objects of the modules imported so far
    gc.freeze()
    start_workers(active_library())
    current = snapshot()

    def import_all() -> None:
        with suppress(ImportError):
            import openTSNE  # noqa: F401

        _ = codebook.Codebook, playlist.PlaylistModel, search.ExactIndex  # each attribute access loads a module
        current.find("a")  # otherwise, with a million songs, the first letter typed would take seconds
        parse_words(current, "a")
        gc.collect()
        gc.freeze()  # and those of the modules imported since

    threading.Thread(target=import_all, name="warm-up", daemon=True).start()


def take_address(page: str) -> None:
    """Apply the URL if the user changed it with a link, Back or Forward; then write the session's state to it.

    Other requests have an earlier URL if the page sent them before it received the result of the previous one.
    """
    query, last = dict(st.query_params), _ADDRESS.get()
    is_new_page = last is None or last[0] != page
    if last is not None and is_new_page:
        close_dialog()
    is_changed = bool(query) if is_new_page else is_history_navigation()
    if is_new_page or is_changed:
        NOT_HERE.set([])
    if is_changed and last != (page, query):
        _follow(query)
        if page in SECTIONS:
            SECTIONS[page].set(query.get("section", ""))
    current = {}
    record = find_chosen_model()
    if record is not None and not record.is_active:
        current["model"] = record.name
    if LIBRARY.get() != library_folders()[0].name:
        current["library"] = LIBRARY.get()
    if page in SECTIONS and SECTIONS[page].get():
        current["section"] = SECTIONS[page].get()
    for name in ("library", "model", "section"):  # the client of the tab writes the song
        if name not in current:
            st.query_params.pop(name, None)
        elif query.get(name) != current[name]:
            st.query_params[name] = current[name]
    _ADDRESS.set((page, dict(st.query_params)))


def _follow(query: dict[str, str]) -> None:
    """Open the library and model that a URL's query names; list those not found in :data:`NOT_HERE`."""
    names = [folder.name for folder in library_folders()]
    missing = []
    name = query.get("library", names[0])
    if name not in names:
        missing.append(f"the library “{name}”")
    elif name != LIBRARY.get():
        LIBRARY.set(name)
        forget_library_state()
    models = {record.name: record.id for record in active_library().models.all()}
    model = query.get("model")
    if model is not None and model not in models:
        missing.append(f"the model “{model}”")
    MODEL.set(models.get(model) if model is not None else None)
    NOT_HERE.set([*NOT_HERE.get(), *missing])
