"""What a browser session remembers, each key with its default and its meaning, and cached openers.

No page and no widget touches ``st.session_state`` by name: a :class:`Key` is the one place where
the name, the default and the meaning of a value stand. What is opened here is shared by all sessions
and never changed by a page.
"""

import gc
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import streamlit as st

from musicsim import codebook, playlist, search
from musicsim._arrays import Float32Array, Int64Array
from musicsim.api.budgets import network_of
from musicsim.errors import ModelError
from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.refresh.map_layout import MapPlacer
from musicsim.explorer.search.query import Example
from musicsim.explorer.search.uploads import MAX_MINUTES, MINUTES, Heard, hear
from musicsim.explorer.search.uploads import warm_up as start_workers
from musicsim.explorer.snapshot.filtering import FilterChoices, filter_choices
from musicsim.explorer.snapshot.map_view import place_vector
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.library.processes.decoding import Decoding, DecodingDroppedError
from musicsim.library.stores.models import ModelRecord
from musicsim.public import is_public

T = TypeVar("T")

_LOOK_EVERY_S = 0.25
_per_library: "dict[str, Key[Any]]" = {}
_kept: "dict[str, Key[Any]]" = {}


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A typed entry of the session.

    Parameters
    ----------
    name : str
        Name in ``st.session_state``.
    default : callable without arguments
        Makes the value a session starts with.
    meaning : str
        One line on what the value is.
    per_library : bool
        Whether the value speaks of one library, and goes when another one is shown.
    is_kept : bool
        Whether it outlives a reload of the page (:mod:`musicsim.ui.base.reloads`). Such a value is replaced, never
        changed in place.
    """

    name: str
    default: Callable[[], T]
    meaning: str
    per_library: bool = False
    is_kept: bool = False

    def __post_init__(self) -> None:
        if self.per_library:
            _per_library[self.name] = self
        if self.is_kept:
            _kept[self.name] = self

    def get(self) -> T:
        """The value, set to its default on first use."""
        try:  # one look, and not two: a page asks hundreds of times
            return cast(T, st.session_state[self.name])
        except KeyError:
            self.set(self.default())
            return cast(T, st.session_state[self.name])

    def set(self, value: T) -> None:
        """Replace the value."""
        st.session_state[self.name] = value

    def keep(self) -> None:
        """Hold a widget's value while its page is not shown; Streamlit drops it otherwise."""
        self.set(self.get())


@dataclass(frozen=True, slots=True)
class Seen:
    """An upload under a model; goes with the upload, so that none of fifty visitors pushes out another's."""

    under: tuple[object, ...]  # which library, model and revision
    example: Example
    place: Float32Array  # (2,), on the map


@dataclass(slots=True, weakref_slot=True)
class Upload:
    """A file or recording that came through the browser; `data` are the bytes that Streamlit holds, not a copy."""

    name: str
    data: bytes
    digest: str
    is_whole: bool = False
    """Whether all of it is to be analysed, however long it is."""
    decoding: Decoding[Heard] | None = None
    """Of :func:`musicsim.explorer.search.uploads.hear`, once it stands in line."""
    seen: Seen | None = None
    """As it was searched with last."""


MODEL: Key[str | None] = Key("model", lambda: None, "id of the model the pages are seen under", per_library=True)
LIBRARY: Key[str] = Key("library", lambda: library_folders()[0].name, "name of the library that is shown")
CHOSEN: Key[int | None] = Key("chosen", lambda: None, "id of the song the pages talk about", per_library=True)
COLOUR_BY: Key[str] = Key("colour_by", lambda: "genre", "what the map's colours mean", is_kept=True)
BESIDE: Key[str | None] = Key("beside", lambda: None, "id of the model whose map stands beside the other", is_kept=True)
FOUND: Key[Int64Array] = Key(
    "found", lambda: np.empty(0, dtype=np.int64), "ids of all songs that a search or a lasso marked", per_library=True
)
EXAMPLE: Key[Upload | None] = Key(
    "example", lambda: None, "sound from outside that is searched with", per_library=True, is_kept=True
)
QUEUE_LIBRARY: Key[str] = Key("queue_library", str, "name of the library whose songs the player holds")
NOT_HERE: Key[list[str]] = Key("not_here", list, "what the address names and is not here")
_ADDRESS: Key[tuple[str, dict[str, str]] | None] = Key(
    "address", lambda: None, "the page and the query that the browser shows"
)
SECTION: Key[str] = Key("library_section", lambda: "songs", "what the Library page shows")


def kept_keys() -> Iterable[Key[Any]]:
    """Entries that outlive a reload of the page."""
    return _kept.values()


def forget_library_state() -> None:
    """Reset every value that speaks of one library: another one is shown."""
    for key in _per_library.values():
        key.set(key.default())


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


@st.cache_resource(max_entries=4, show_spinner="Unfolding the map…")
def _placer(folder: Path, revision: int, model_id: str | None, _snapshot: Snapshot) -> MapPlacer:
    return MapPlacer(_snapshot.X, _snapshot.map)


def _place(of: Snapshot, vector: Float32Array) -> Float32Array:
    """Where a song from outside is on the map; the placer is made where it is needed only."""

    def unfold(vectors: Float32Array) -> Float32Array:
        return _placer(of.library.folder, of.revision, of.model_id, of).place(vectors)

    return place_vector(vector, of.map, of.index, unfold)


def seen_as(of: Snapshot, upload: Upload) -> Seen:
    """An upload as the model in use hears it; waits for its turn, and shows how many come before it.

    Raises AudioError if it cannot be decoded or is too short; the message names it; ModelError if the library
    has no model yet.
    """
    heard = _wait_for(of, upload)
    # the revision: the library may have the upload by now
    under = (of.library.folder, of.revision, of.model_id, upload.is_whole)
    seen = upload.seen
    if seen is None or seen.under != under:
        example = heard.under(of)
        seen = upload.seen = Seen(under, example, _place(of, example.vector))
    return seen


def _wait_for(of: Snapshot, upload: Upload) -> Heard:
    place = st.empty()
    while True:
        if upload.decoding is None:
            minutes = MAX_MINUTES if upload.is_whole else MINUTES
            visitor = network_of(st.context.ip_address or "127.0.0.1")  # Streamlit has None for this machine
            upload.decoding = hear(of, upload.data, upload.name, minutes, visitor=visitor)
        try:
            # Streamlit ends this run at what is drawn, when the page is left or the file removed
            while not upload.decoding.within(_LOOK_EVERY_S):
                n_ahead = upload.decoding.n_ahead
                others = "1 file is" if n_ahead == 1 else f"{n_ahead} files are"
                words = f"In line: {others} ahead of yours." if n_ahead else "Listening…"
                place.info(words, icon=":material/hourglass_top:")
            place.empty()
            return upload.decoding.future.result()
        except DecodingDroppedError:  # this page was left for a while
            upload.decoding = None


def take_address(page: str) -> None:
    """Follow the address where the browser changed it (a link, Back, Forward), then keep it at what is shown.

    Parameters
    ----------
    page : str
        Path of the page that is shown. A link to another page of the app comes without a query: what is shown stays.
    """
    asked, last = dict(st.query_params), _ADDRESS.get()
    is_plain = (last is None or last[0] != page) and not asked
    if last != (page, asked) and not is_plain:
        _follow(asked)
    shown = _shown()
    for name in ("library", "model", "song"):
        if name not in shown:
            st.query_params.pop(name, None)
        elif asked.get(name) != shown[name]:
            st.query_params[name] = shown[name]
    _ADDRESS.set((page, dict(st.query_params)))


def _follow(asked: dict[str, str]) -> None:
    """Show what an address names; what it names and is not here is put into :data:`NOT_HERE`."""
    names = [folder.name for folder in library_folders()]
    missing = []
    name = asked.get("library", names[0])
    if name not in names:
        missing.append(f"the library “{name}”")
    elif name != LIBRARY.get():
        LIBRARY.set(name)
        forget_library_state()
    models = {record.name: record.id for record in active_library().models.all()}
    model, song = asked.get("model"), asked.get("song")
    if model is not None and model not in models:
        missing.append(f"the model “{model}”")
    MODEL.set(models.get(model) if model is not None else None)
    known = song is not None and song.isascii() and song.isdigit() and bool(active_library().songs([int(song)]))
    if song is not None and not known:
        missing.append(f"song {song}")
    CHOSEN.set(int(song) if song is not None and known else None)
    NOT_HERE.set(missing)


def _shown() -> dict[str, str]:
    """What the address of the page should name."""
    shown = {}
    record = chosen_model()
    if record is not None and not record.is_active:
        shown["model"] = record.name
    if LIBRARY.get() != library_folders()[0].name:
        shown["library"] = LIBRARY.get()
    if CHOSEN.get() is not None:
        shown["song"] = str(CHOSEN.get())
    return shown


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
