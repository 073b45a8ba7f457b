"""Libraries, models, snapshots and walks that all sessions share; a page never changes them."""

import gc
import threading
from contextlib import suppress
from pathlib import Path

import streamlit as st

from musicsim import codebook, playlist, search
from musicsim.errors import ModelError
from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.search.uploads import warm_up as start_workers
from musicsim.explorer.snapshot.filtering import FilterChoices, filter_choices
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord
from musicsim.public import is_public
from musicsim.ui.base.keys import LIBRARY, MODEL


def active_library() -> Library:
    """The library this session shows; the default one when the chosen one has gone."""
    if LIBRARY.get() not in {folder.name for folder in library_folders()}:
        LIBRARY.set(library_folders()[0].name)
    return open_library(LIBRARY.get())


def chosen_model() -> ModelRecord | None:
    """The model this session has chosen; the one in use when that has gone, None before the first."""
    models = {record.id: record for record in active_library().models.all()}
    if MODEL.get() not in models:
        MODEL.set(next((record.id for record in models.values() if record.is_active), None))
    return models.get(MODEL.get() or "")


def active_model() -> str | None:
    """The id of the model this session sees: the chosen one, or where its files are gone the oldest that has its own.

    None before the first.
    """
    chosen, models = chosen_model(), active_library().models
    if chosen is None:
        return None
    if models.is_whole(chosen):
        return chosen.id
    return next((record.id for record in models.all() if models.is_whole(record)), chosen.id)


@st.cache_resource(max_entries=6, show_spinner=False)
def _snapshot(folder: Path, revision: int, model_id: str | None, _library: Library) -> Snapshot:
    seen = take_snapshot(_library, model_id)
    with suppress(ModelError):  # its files are gone: what compares songs says so, a page may do without
        seen.build_index_in_background()
        if not is_public():
            for hook in load_hooks("after_snapshot"):  # function(snapshot: Snapshot) -> None, which must not wait
                hook(seen)
    return seen


def snapshot(model_id: str | None = None) -> Snapshot:
    """The active library as it stands, shared by all sessions until it changes.

    Parameters
    ----------
    model_id : str, optional
        Seen under this model instead of the one that the session has chosen.
    """
    library = active_library()
    return _snapshot(library.folder, library.revision, model_id or active_model(), library)


@st.cache_resource(max_entries=4, show_spinner=False)
def _filter_choices(folder: Path, revision: int, model_id: str | None, _snapshot: Snapshot) -> FilterChoices:
    return filter_choices(_snapshot)


def choices_of(of: Snapshot) -> FilterChoices:
    """What the songs of a snapshot can be filtered by."""
    return _filter_choices(of.library.folder, of.revision, of.model_id, of)


@st.cache_resource(max_entries=4, show_spinner="Weighing what songs have in common…")
def _walk(folder: Path, revision: int, model_id: str | None, _snapshot: Snapshot) -> Walk:
    return Walk(_snapshot)


def walk(of: Snapshot) -> Walk:
    """The walk that draws playlists from a snapshot."""
    return _walk(of.library.folder, of.revision, of.model_id, of)


@st.cache_resource(show_spinner=False)
def warm_up() -> None:
    """Start, import and read what the first search and playlist will need, beside the first page, once a process."""
    start_workers(active_library())
    now = snapshot()

    def import_all() -> None:
        import openTSNE  # noqa: F401

        _ = codebook.Codebook, playlist.PlaylistModel, search.ExactIndex  # each loads its module
        now.find("a")  # of a million songs the first letter typed would take seconds
        understood(now, "a")
        # Streamlit collects garbage after every run of a page: without this it goes through all modules each time
        gc.collect()
        gc.freeze()

    threading.Thread(target=import_all, name="warm-up", daemon=True).start()
