"""The address of a page: it names the library, the model and the song that the page shows."""

import streamlit as st

from musicsim.explorer.libraries import library_folders
from musicsim.ui.base.keys import CHOSEN, LIBRARY, MODEL, NOT_HERE, Key, forget_library_state
from musicsim.ui.base.openers import active_library, chosen_model

_ADDRESS: Key[tuple[str, dict[str, str]] | None] = Key(
    "address", lambda: None, "the page and the query that the browser shows"
)


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
