"""The address of a page, with the library, the model and the song that the page shows."""

import streamlit as st

from musicsim.explorer.libraries import library_folders
from musicsim.ui.base.keys import CHOSEN, LIBRARY, MODEL, NOT_HERE, Key, forget_library_state
from musicsim.ui.base.openers import active_library, find_chosen_model

_ADDRESS: Key[tuple[str, dict[str, str]] | None] = Key("address", lambda: None, "page and query in the browser")


def take_address(page: str) -> None:
    """Follow the address if the browser changed it (a link, Back, Forward), then set it to the state of the session.

    Links between pages lack a query, and do not change the state. `page` is the path of the page.
    """
    query, last = dict(st.query_params), _ADDRESS.get()
    is_plain_link = (last is None or last[0] != page) and not query
    if last != (page, query) and not is_plain_link:
        _follow(query)
    current = {}
    record = find_chosen_model()
    if record is not None and not record.is_active:
        current["model"] = record.name
    if LIBRARY.get() != library_folders()[0].name:
        current["library"] = LIBRARY.get()
    if CHOSEN.get() is not None:
        current["song"] = str(CHOSEN.get())
    for name in ("library", "model", "song"):
        if name not in current:
            st.query_params.pop(name, None)
        elif query.get(name) != current[name]:
            st.query_params[name] = current[name]
    _ADDRESS.set((page, dict(st.query_params)))


def _follow(query: dict[str, str]) -> None:
    """Show the library, model and song of a query, and report those that do not exist in :data:`NOT_HERE`."""
    names = [folder.name for folder in library_folders()]
    missing = []
    name = query.get("library", names[0])
    if name not in names:
        missing.append(f"the library “{name}”")
    elif name != LIBRARY.get():
        LIBRARY.set(name)
        forget_library_state()
    models = {record.name: record.id for record in active_library().models.all()}
    model, song = query.get("model"), query.get("song")
    if model is not None and model not in models:
        missing.append(f"the model “{model}”")
    MODEL.set(models.get(model) if model is not None else None)
    song_id = int(song) if song is not None and song.isascii() and song.isdigit() else None
    if song_id is not None and not active_library().songs([song_id]):
        song_id = None
    if song is not None and song_id is None:
        missing.append(f"song {song}")
    CHOSEN.set(song_id)
    NOT_HERE.set(missing)
