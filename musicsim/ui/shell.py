"""The frame of every page: navigation, library and model, running job, player."""

from importlib import import_module

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.libraries import library_folders, title_of
from musicsim.library import Library, release_pages
from musicsim.public import is_public
from musicsim.ui import client
from musicsim.ui.base import PAGES, Key, off_if, plain
from musicsim.ui.base.frame import FRAME_CSS, ICON, LOGO
from musicsim.ui.base.keys import LIBRARY, MODEL, NOT_HERE, forget_library_state
from musicsim.ui.base.openers import active_library, active_model, find_chosen_model, take_address, warm_up
from musicsim.ui.base.reloads import save_session
from musicsim.ui.base.runtime import leave_containers
from musicsim.ui.base.sections import is_offered
from musicsim.ui.base.watching import note_run
from musicsim.ui.components.jobs_view import library_line, upgrade_line

_TITLES = {
    "listen": ("Listen", ":material/headphones:"),
    "playlist": ("Playlists", ":material/queue_music:"),
    "train": ("Teach", ":material/school:"),
    "library": ("Library", ":material/library_music:"),
    "research": ("Research", ":material/insights:"),
}
_SHOWN_MODEL: Key[str] = Key("shown_model", str, "name of the model that this session used last", per_library=True)
_VISITORS_TITLES = {"train": ("Compare", ":material/compare_arrows:")}


def _sidebar(page: str) -> None:
    library = active_library()
    is_owner = not is_public()
    names = {folder.name: title_of(folder) for folder in library_folders()} if is_owner else {}
    models = {record.id: record.name for record in library.models.all()}
    chosen = active_model()
    _announce_model(models.get(chosen or "", ""), is_chosen=MODEL.get() == chosen)
    if len(names) > 1 or len(models) > 1:
        label = " · ".join(plain(name) for name in (names.get(library.name), models.get(chosen or "")) if name)
        with st.popover(label, icon=":material/tune:", type="tertiary", help="Change the library or the model."):
            _choose_library(library, names)
            _choose_model(library, models, chosen)
    if is_owner:
        upgrade_line(library)
    library_line(library, has_actions=page != "library")


def _announce_model(name: str, *, is_chosen: bool) -> None:
    """Tell the user if the model has changed without a choice in this session, for example at the end of a job."""
    if _SHOWN_MODEL.get() not in ("", name) and not is_chosen:
        st.toast(f"{plain(name)} is now in use.", icon=":material/check_circle:")
    _SHOWN_MODEL.set(name)


def _choose_library(library: Library, names: dict[str, str]) -> None:
    if names:
        # The widget's key contains the value, and the widget starts with that value. A widget that takes its value from
        # the session resets to the first option if the user switches pages before the browser has received the value.
        widget = f"library_{library.name}"

        def switch() -> None:
            LIBRARY.set(st.session_state[widget])
            forget_library_state()

        st.selectbox(
            "Library", list(names), list(names).index(library.name), key=widget, on_change=switch,
            format_func=names.__getitem__,
            **off_if(len(names) == 1, "This is the only library. Make others in Library > Settings."),
        )  # fmt: skip


def _choose_model(library: Library, models: dict[str, str], chosen: str | None) -> None:
    if len(models) > 1:
        model_widget = f"model_{library.name}_{chosen}"
        st.selectbox(
            "Model", list(models), list(models).index(chosen) if chosen in models else None, key=model_widget,
            on_change=lambda: MODEL.set(st.session_state[model_widget]), format_func=models.__getitem__,
            help="Every page uses this similarity model." + (" Create models on the Teach page." * (not is_public())),
        )  # fmt: skip


def _report_lost_model() -> None:
    """If the files of the chosen model are missing, offer the models that have files."""
    lost, models = find_chosen_model(), active_library().models
    if lost is None or models.is_whole(lost):
        return
    others = [record for record in models.all() if models.is_whole(record)]
    if not others:
        return  # every page that compares songs reports this already
    st.error(
        f"The files of the model “{plain(lost.name)}” are missing or damaged. Choose a different model.",
        icon=":material/error:",
    )
    with st.container(horizontal=True):
        for record in others:
            st.button(plain(record.name), key=f"instead_{record.id}", on_click=MODEL.set, args=(record.id,))


def draw() -> None:
    """Draw the frame around the page that the URL names."""
    with note_run():
        _draw()


def _draw() -> None:
    leave_containers()
    st.set_page_config(page_title="musicsim", page_icon=ICON, layout="wide")
    st.logo(LOGO, size="large")
    st.html(f"<style>{FRAME_CSS}</style>")
    pages = [
        st.Page(PAGES[name], title=title, icon=icon, url_path=name, default=name == "listen")
        for name, (title, icon) in (_TITLES | (_VISITORS_TITLES if is_public() else {})).items()
        if is_offered(lambda name=name: import_module(f"musicsim.ui.{name}.page").draw)  # type: ignore[misc]
    ]
    page = st.navigation(pages)
    try:
        take_address(page.url_path)
        active_model()
        with st.sidebar:
            _sidebar(page.url_path)
        with st.bottom:
            client.mount(page.url_path or "listen")
        with st.container():  # one element with or without messages: if the page moved, it would lose what users type
            _report_lost_model()
            if missing := NOT_HERE.get():
                words = f"Not found: {plain(', '.join(missing))}. It may have been deleted."
                st.warning(words, icon=":material/link_off:")
        page.run()
        warm_up()
    except MusicsimError as error:
        st.error(plain(error), icon=":material/error:")
    finally:
        save_session()
        release_pages()


if __name__ == "__main__":
    draw()
