"""MPD on the pages: its address in the Servers section, and buttons that send a playlist to MPD."""

from collections.abc import Callable, Sequence

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.extensions.mpd.client import Mpd, MpdAddress, is_in_environment, is_mpd_set, mpd_address, save_address
from musicsim.library import Library, Song
from musicsim.ui import Sending, target_button
from musicsim.ui.base import Key, plain, show_errors

_MAX_PORT = 65_535
_REPLACE: Key[bool] = Key("playlist_mpd_replace", lambda: False, "whether a playlist in MPD may be replaced")


def draw(snapshot: Snapshot, *, busy: bool) -> None:
    library = snapshot.library
    st.header("MPD", anchor=False)
    if not is_mpd_set(library):
        _draw_form(library)
        return
    with st.container(border=True):
        with show_errors():
            address = mpd_address(library)
            facts = ["to queue or save playlists in MPD, use *Send* on the Playlists page"]
            facts += ["with a password"] if address.password else []
            facts += [f"music folder: {plain(address.music)}"] if address.music else []
            facts += ["set by `MPD_HOST` or `MPD_PORT`"] if is_in_environment() else []
            st.markdown(f"**{plain(address)}**  \n:small[:gray[{' · '.join(facts)}]]")
        if not is_in_environment():
            st.button("Remove", icon=":material/delete:", key="mpd_remove", on_click=save_address, args=(library, None))


def _draw_form(library: Library) -> None:
    with st.expander("Connect MPD", icon=":material/add:"), st.form("mpd_add", border=False):
        first, second = st.columns(2, gap="large")
        with first:
            host = st.text_input("Host, or path of MPD's socket", key="mpd_host", placeholder="localhost")
            port = st.number_input("Port", 1, _MAX_PORT, MpdAddress().port, key="mpd_port")
        with second:
            password = st.text_input("Password", type="password", key="mpd_password")
            music = st.text_input(
                "MPD's music folder on this machine", key="mpd_music",
                help="MPD's music_directory, as a path on this machine. Not needed with a socket, or if this library "
                "includes the folder.",
            )  # fmt: skip
        if st.form_submit_button("Connect", icon=":material/link:", key="mpd_connect"):
            address = MpdAddress(host.strip() or MpdAddress().host, int(port), password, music.strip())
            with show_errors():
                with st.spinner("Connecting to MPD"), Mpd(library, address):
                    save_address(library, address)
                st.rerun()


def target(sending: Sending) -> Callable[[], None] | None:
    return (lambda: _draw_target(sending)) if is_mpd_set(sending.snapshot.library) else None


def _draw_target(sending: Sending) -> None:
    _REPLACE.get()
    target_button(sending, "Queue in MPD", ":material/queue_music:", _queue, key="playlist_mpd_queue", needs_name=False)
    target_button(sending, "Save in MPD", ":material/save:", _save, key="playlist_mpd_save")
    st.toggle(f"Replace “{plain(sending.name)}” if it exists in MPD", key=_REPLACE.name, persist_state="session")


def _queue(library: Library, _: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    with Mpd(library, mpd_address(library)) as mpd:
        return "Queued in MPD.", mpd.queue(songs), "MPD does not have"


def _save(library: Library, name: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    with Mpd(library, mpd_address(library)) as mpd:
        unknown = mpd.save(name, songs, replace=_REPLACE.get())
    return f"Saved in MPD as “{plain(name)}”.", unknown, "MPD does not have"
